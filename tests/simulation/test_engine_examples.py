"""What an operator is told to expect of the scheduler, played through a simulated box.

Models `A` and `B` evict each other, and the box is busy with `A` until the
moment given.  The defaults hold unless a test says otherwise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from llamaswap.config.model import SchedulerConfig, SchedulerName
from llamaswap.scheduling.vocabulary import Band, Term
from llamaswap.simulation.arrivals import Arrival
from llamaswap.simulation.results import Results
from support.simulation_play import box, order, play
from support.simulation_traces import arrival, small_traces


def busy_until(moment: float, *trace: Arrival, **serial: Any) -> tuple[Results, list[int]]:
    """Return the results, and who went after the first job, by place in `trace`."""
    scenario = replace(box(load=2.0, models=("A", "B"), **serial), resident=("A",))
    results, outcomes = play([arrival(0.0, run=moment), *trace], scenario)
    return results, [number - 1 for number in order(outcomes)[1:]]


def test_example_1_bands_go_before_everything_else() -> None:
    trace = arrival(0.0, "A", -100), arrival(0.0, "B", 0), arrival(0.0, "B", 100)

    results, went = busy_until(10.0, *trace)

    assert went == [3, 2, 1]
    assert results.loads == {"A": 1, "B": 1}


def test_example_2_affinity_saves_a_swap() -> None:
    results, went = busy_until(2.0, arrival(0.0, "B"), arrival(1.0, "A"))

    assert went == [2, 1]
    assert sum(results.loads.values()) == 1
    assert results.reorders[Band.NORMAL] == {Term.AGING: 0, Term.SWAP_AFFINITY: 1, Term.SWAP_BUDGET: 0}


def test_example_3_affinity_is_worth_six_hundred_seconds_of_arrival() -> None:
    _, late = busy_until(602.0, arrival(0.0, "B"), arrival(601.0, "A"))
    _, early = busy_until(602.0, arrival(0.0, "B"), arrival(599.0, "A"))

    assert (late, early) == ([1, 2], [2, 1])


def test_example_4_an_offset_orders_a_band_and_never_leaves_it() -> None:
    trace = arrival(0.0, "A", -98), arrival(0.0, "A", -99), arrival(0.0, "A", -100), arrival(100.0, "A", 0)

    assert busy_until(200.0, *trace)[1] == [4, 1, 2, 3]


def test_example_5_a_band_is_a_head_start_of_six_thousand_seconds() -> None:
    trace = arrival(0.0, "A", -100), arrival(5999.0, "A"), arrival(6001.0, "A")

    assert busy_until(6002.0, *trace, swap_affinity_bonus=0)[1] == [2, 1, 3]


@settings(max_examples=50, deadline=None)
@given(small_traces(impatient=False))
def test_example_6_without_affinity_equal_priorities_are_served_as_they_came(trace: list[Arrival]) -> None:
    alike = [arrival(each.at, each.model, 7, each.run) for each in trace]

    _, outcomes = play(alike, box(swap_affinity_bonus=0))

    assert list(outcomes) == sorted(outcomes)


@pytest.mark.parametrize(("divisor", "wait"), [(0.0, 1000.0), (1.0, 200.0)])
def test_example_7_a_steady_stream_starves_batch_for_ever_unless_waiting_counts(
    divisor: float, wait: float
) -> None:
    stream = [arrival(float(n), "A", 100) for n in range(1000)]

    _, outcomes = play(
        [arrival(0.0, "A", 100), arrival(0.0, "A", -100), *stream[1:]], box(load=0.0, aging_divisor=divisor)
    )

    assert outcomes[2].began == wait


def test_example_8_under_fifo_the_header_is_added_to_the_models_priority() -> None:
    scheduler = SchedulerConfig(use=SchedulerName.FIFO, fifo_priority={"B": 10})
    scenario = replace(box(), resident=("A",)).under(scheduler)

    _, outcomes = play([arrival(0.0, "A", run=9.0), arrival(1.0, "B", -100), arrival(2.0, "C")], scenario)

    assert order(outcomes) == [1, 3, 2]
