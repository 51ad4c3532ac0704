"""Scenarios side by side."""

from __future__ import annotations

import pytest

from llamaswap.simulation.comparison import compare, with_baseline
from llamaswap.simulation.engine import simulate
from llamaswap.simulation.scenario import box_of
from support.simulation_traces import afternoon, arrival

BOX = box_of(f"m{n}" for n in range(4))


def test_fifo_comes_first_and_each_scenario_plays_the_same_requests() -> None:
    scenarios = [BOX, BOX.with_serial(swap_affinity_bonus=99)]

    table = compare(afternoon(300), scenarios)

    assert [results.scenario for results in table.results] == ["fifo", "serial 60/10", "serial 60/99"]
    assert table.baseline is table.results[0]
    for results, scenario in zip(table.results, [BOX.baseline(), *scenarios], strict=True):
        assert results == simulate(afternoon(300), scenario)


def test_fifo_is_not_played_twice_and_can_be_left_out() -> None:
    assert [one.name for one in with_baseline([BOX.baseline(), BOX])] == ["fifo", "serial 60/10"]
    assert [r.scenario for r in compare(afternoon(10), [BOX], baseline=False).results] == ["serial 60/10"]


def test_each_row_has_the_same_cells_in_the_same_order() -> None:
    fifo, serial = compare(afternoon(300), [BOX]).rows()

    assert list(fifo) == list(serial)
    assert list(serial)[:4] == ["scenario", "requests", "interactive_count", "interactive_mean"]
    assert {"normal_p95", "batch_max", "swaps", "loading_share", "normal_reorders_aging"} <= serial.keys()
    assert serial["requests"] == 300


def test_rows_say_what_the_results_do() -> None:
    trace = [arrival(0.0, "m0", 100, run=5.0), arrival(1.0, "m1", -100, run=5.0, cancel_after=1.0)]

    row = compare(trace, [BOX], baseline=False).rows()[0]

    assert (row["interactive_count"], row["interactive_p50"]) == (1, 15.0)
    assert (row["batch_count"], row["batch_cancelled"]) == (0, 1)
    assert (row["makespan"], row["loading"], row["busy_share"]) == (20.0, 15.0, 0.25)


def test_ratios_are_multiples_of_the_baseline_where_it_is_not_nothing() -> None:
    table = compare(afternoon(300), [BOX])
    (fifo, serial), (_, ratio) = table.rows(), table.ratios()

    assert ratio["scenario"] == "serial 60/10"
    assert ratio["swaps"] == float(serial["swaps"]) / float(fifo["swaps"])
    assert ratio["requests"] == 1.0
    assert "normal_reorders_aging" not in ratio


def test_progress_names_the_scenario() -> None:
    told: list[tuple[str, int, int | None]] = []

    compare(afternoon(10), [BOX], progress=lambda name, done, total: told.append((name, done, total)))

    assert told == [("fifo", 10, 10), ("serial 60/10", 10, 10)]


def test_scenarios_must_be_told_apart() -> None:
    with pytest.raises(ValueError, match="names"):
        compare([], [BOX, BOX])
    with pytest.raises(ValueError, match="names"):
        compare([], [])
