"""Runs as a table and as facts."""

from __future__ import annotations

import json

from llamaswap.simulation.arrivals import Arrival
from llamaswap.simulation.engine import simulate
from llamaswap.simulation.scenario import box_of
from llamaswap.tools.tables import facts, grid, seconds, side_by_side

ARRIVALS = [
    Arrival(at=0, model="a", priority=-100, run=60),
    Arrival(at=1, model="b", priority=100, run=5),
    Arrival(at=2, model="a", priority=-100, run=60),
    Arrival(at=3, model="b", priority=-100, run=5, cancel_after=10),
]


def test_runs_stand_side_by_side_and_bands_that_nobody_asked_for_are_left_out() -> None:
    box = box_of(["a", "b"])
    fifo = simulate(ARRIVALS, box.baseline())
    serial = simulate(ARRIVALS, box)

    text = side_by_side([fifo, serial])
    assert text.splitlines()[0].split() == ["fifo", "serial", "60/10"]
    assert "normal" not in text
    assert "left before its turn    batch       1             1" in text
    assert "refused" not in text
    assert len({len(line) for line in text.splitlines()}) == 1


def test_for_programs_a_run_is_json_with_the_settings_under_their_own_names() -> None:
    box = box_of(["a", "b"], swap_budget=15.0, width={"b": 2})
    told = json.loads(json.dumps(facts(box, simulate(ARRIVALS, box))))

    assert told["scheduler"] == {
        "use": "serial",
        "agingDivisor": 60.0,
        "swapAffinityBonus": 10,
        "swapBudgetSeconds": 15.0,
        "width": {"b": 2},
    }
    assert told["bands"]["interactive"]["count"] == 1
    assert told["bands"]["batch"]["cancelled"] == 1
    assert told["running"] + told["loading"] + told["idle"] == told["makespan"]
    assert facts(box.baseline(), simulate(ARRIVALS, box))["scheduler"] == {"use": "fifo"}


def test_a_grid_has_its_first_column_to_the_left() -> None:
    assert grid(("setting", "swaps"), [("60/10", "7"), ("1800/99/15", "1234")]) == (
        "setting     swaps\n60/10           7\n1800/99/15   1234\n"
    )


def test_seconds_have_tenths_only_where_they_matter() -> None:
    assert [seconds(value) for value in (0, 9.94, 12.6, 3003.2)] == ["0.0", "9.9", "13", "3003"]
