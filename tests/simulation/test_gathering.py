"""Traces laid over each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamaswap.simulation.gathering import EVERY, Gathered, gather
from llamaswap.simulation.mapping import mapping_of
from llamaswap.simulation.placing import Costs
from llamaswap.simulation.records import Unusable
from llamaswap.simulation.traces import open_trace
from support.traces import AZURE_2023, AZURE_2024, written

MAPPING = """
model: {from: trace, values: {old: coder, new: chat}}
models: {"*": {prefill: 1000, decode: 10}}
"""
HEADER = "arrival_s,model,priority,run_s\n"


def gathered(*words: str, speed: float = 1.0, limit: int | None = None, skip_bad: bool = False) -> Gathered:
    mapping = mapping_of(MAPPING, "m.yaml")
    traces = [open_trace(one) for one in words]
    return gather(
        traces, mapping, Costs(mapping.costs), names={}, speed=speed, limit=limit, skip_bad=skip_bad
    )


def test_each_trace_begins_at_0_and_they_are_in_the_order_of_time(tmp_path: Path) -> None:
    old, new = written(tmp_path, "old.csv", AZURE_2023), written(tmp_path, "new.csv", AZURE_2024)

    arrivals = gathered(str(new), str(old)).arrivals

    assert [(one.model, round(one.at, 3)) for one in arrivals] == [
        ("chat", 0.0),
        ("coder", 0.0),
        ("coder", 0.052),
        ("chat", 1.5),
    ]


def test_speed_moves_arrivals_closer_and_leaves_runs_alone(tmp_path: Path) -> None:
    path = written(tmp_path, "new.csv", AZURE_2024)

    slow, fast = gathered(str(path)).arrivals, gathered(str(path), speed=3).arrivals

    assert slow[1].at == pytest.approx(1.5)
    assert fast[1].at == pytest.approx(0.5)
    assert slow[1].run == fast[1].run


def test_a_limit_holds_for_each_trace(tmp_path: Path) -> None:
    old, new = written(tmp_path, "old.csv", AZURE_2023), written(tmp_path, "new.csv", AZURE_2024)

    assert len(gathered(str(old), str(new), limit=1).arrivals) == 2


def test_lines_out_of_order_are_put_in_their_place_and_counted(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", HEADER + "5,chat,0,1\n3,chat,0,2\n9,chat,0,3\n")

    told = gathered(str(path))

    assert [(one.at, one.run) for one in told.arrivals] == [(-2.0, 2.0), (0.0, 1.0), (4.0, 3.0)]
    assert told.out_of_order == 1


def test_bad_lines_are_refused_or_counted(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", HEADER + "5,chat,0,1\nx,chat,0,2\n")

    with pytest.raises(Unusable, match=r"a\.csv:3: arrival_s"):
        gathered(str(path))
    assert gathered(str(path), skip_bad=True).skipped == 1


def test_a_trace_that_cannot_be_placed_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "other.csv", AZURE_2023)

    with pytest.raises(Unusable, match=r"other\.csv: the trace names no models"):
        gathered(str(path), skip_bad=True)


def test_no_request_at_all_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="no request in there"):
        gathered(str(written(tmp_path, "a.csv", HEADER)))


def test_progress_is_told_now_and_then(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", HEADER + "5,chat,0,1\n" * (2 * EVERY + 5))
    mapping, told = mapping_of(MAPPING, "m.yaml"), list[int]()

    gather([open_trace(str(path))], mapping, Costs(mapping.costs), names={}, progress=told.append)

    assert told == [EVERY, 2 * EVERY]
