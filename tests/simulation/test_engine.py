"""Traces: played whole, the same every time, or objected to."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from time import process_time

import pytest

from llamaswap.simulation.arrivals import Arrival
from llamaswap.simulation.engine import BadTrace, simulate
from llamaswap.simulation.scenario import box_of
from support.simulation_play import box
from support.simulation_traces import afternoon, arrival


def test_the_same_trace_gives_the_same_results_from_a_list_or_a_generator() -> None:
    scenario = box_of((f"m{n}" for n in range(4)), swap_budget=15.0)

    assert simulate(list(afternoon(3000)), scenario) == simulate(afternoon(3000), scenario)


def test_a_trace_may_begin_at_any_moment() -> None:
    trace = [arrival(0.0, "A"), arrival(1.0, "B"), arrival(2.5, "A", 100)]
    later = [
        Arrival(at=each.at + 2.0**30, model=each.model, priority=each.priority, run=1.0) for each in trace
    ]

    assert simulate(later, box()) == simulate(trace, box())


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (arrival(-1.0), "arrival 2 comes at -1 s"),
        (arrival(float("nan")), "arrival 2 comes at nan s"),
        (arrival(float("inf")), "arrival 2 comes at inf s"),
        (arrival(1.0, run=-1.0), "arrival 2 runs for -1 s"),
        (arrival(1.0, run=float("inf")), "arrival 2 runs for inf s"),
        (arrival(1.0, cancel_after=-1.0), "arrival 2 leaves after -1 s"),
        (arrival(1.0, "nobody"), "arrival 2 wants 'nobody', which is no model of this box"),
    ],
)
def test_an_impossible_arrival_is_named(second: Arrival, words: str) -> None:
    with pytest.raises(BadTrace, match=words):
        simulate([arrival(0.0), second], box())


def test_progress_goes_by_who_has_ended_and_knows_the_whole_once_all_have_arrived() -> None:
    told: list[tuple[int, int | None]] = []

    def progress(done: int, total: int | None) -> None:
        told.append((done, total))

    trace = [arrival(float(n), run=0.5 if n < 1000 else 9.0) for n in range(2500)]
    simulate(trace, box(), progress=progress)
    simulate(iter(trace), box(), progress=progress)

    assert told[:3] == [(1000, 2500), (2000, 2500), (2500, 2500)]
    assert told[3:] == [(1000, None), (2000, 2500), (2500, 2500)]


def test_memory_does_not_grow_with_the_requests_that_have_ended() -> None:
    scenario = box_of(f"m{n}" for n in range(4))

    def peak(requests: Iterator[Arrival]) -> int:
        tracemalloc.start()
        try:
            simulate(requests, scenario)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(afternoon(500))
    few, many = peak(afternoon(1000, load=0.2)), peak(afternoon(5000, load=0.2))

    # Eight bytes of a wait, and as many again while they are sorted.
    assert (many - few) / 4000 < 80


def test_a_hundred_thousand_requests_take_seconds() -> None:
    scenario = box_of((f"m{n}" for n in range(4)), swap_budget=15.0)
    begun = process_time()

    results = simulate(afternoon(100_000, load=0.9), scenario)

    assert results.waits.count == 100_000
    assert process_time() - begun < 20.0
