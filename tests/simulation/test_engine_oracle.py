"""A plainer box agrees about every request, and nobody gets lost."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.config.model import GroupConfig, SchedulerName
from llamaswap.scheduling.vocabulary import Band, Term
from llamaswap.simulation.arrivals import Arrival
from support.simulation_naive import NaiveFifo, NaiveSerial
from support.simulation_play import box, endings, play
from support.simulation_traces import MODELS, small_traces


@settings(max_examples=150, deadline=None)
@given(
    trace=small_traces(),
    load=st.sampled_from((0.0, 0.5, 4.0)),
    divisor=st.sampled_from((0.0, 0.25, 60.0)),
    bonus=st.sampled_from((0, 10, 99)),
)
def test_a_plain_box_that_looks_at_everybody_agrees_about_every_request(
    trace: list[Arrival], load: float, divisor: float, bonus: int
) -> None:
    naive = NaiveSerial(load, divisor, bonus)

    results, outcomes = play(trace, box(load, aging_divisor=divisor, swap_affinity_bonus=bonus))

    assert endings(outcomes) == naive.play(trace)
    assert sum(results.loads.values()) == naive.loads


@settings(max_examples=100, deadline=None)
@given(
    trace=small_traces(),
    load=st.sampled_from((0.0, 4.0)),
    bonus=st.sampled_from((0, 10)),
    budget=st.sampled_from((2.0, 15.0)),
)
def test_a_plain_box_agrees_about_what_a_swap_budget_lets_pass(
    trace: list[Arrival], load: float, bonus: int, budget: float
) -> None:
    naive = NaiveSerial(load, 60.0, bonus, budget=budget)

    results, outcomes = play(trace, box(load, swap_affinity_bonus=bonus, swap_budget=budget))

    assert endings(outcomes) == naive.play(trace)
    passed = sum(results.reorders[band][Term.SWAP_BUDGET] for band in Band)
    assert passed == naive.passed


@settings(max_examples=100, deadline=None)
@given(trace=small_traces(), load=st.sampled_from((0.0, 4.0)), width=st.integers(2, 4))
def test_a_plain_box_agrees_when_several_of_a_model_run_at_once(
    trace: list[Arrival], load: float, width: int
) -> None:
    naive = NaiveSerial(load, 60.0, 10, width)

    results, outcomes = play(trace, box(load, width=dict.fromkeys(MODELS, width)))

    assert endings(outcomes) == naive.play(trace)
    assert sum(results.loads.values()) == naive.loads


@settings(max_examples=100, deadline=None)
@given(trace=small_traces(), load=st.sampled_from((0.0, 0.5, 4.0)), parallel=st.integers(1, 3))
def test_a_plain_box_agrees_under_fifo(trace: list[Arrival], load: float, parallel: int) -> None:
    naive = NaiveFifo(load, parallel)
    scenario = replace(box(load), parallel=dict.fromkeys(MODELS, parallel)).baseline()

    results, outcomes = play(trace, scenario)

    assert endings(outcomes) == naive.play(trace)
    assert sum(results.loads.values()) == naive.loads


@settings(max_examples=100, deadline=None)
@given(
    trace=small_traces(),
    use=st.sampled_from(SchedulerName),
    budget=st.sampled_from((0.0, 5.0)),
    width=st.integers(1, 3),
    together=st.booleans(),
)
def test_everybody_is_served_or_cancelled_once_and_the_time_adds_up(
    trace: list[Arrival], use: SchedulerName, budget: float, width: int, together: bool
) -> None:
    scenario = box(swap_budget=budget, width=dict.fromkeys(MODELS, width))
    groups = (GroupConfig(id="(default)", swap=not together, members=MODELS),)
    scheduler = replace(scenario.scheduler, use=use)
    scenario = replace(scenario, config=replace(scenario.config, groups=groups)).under(scheduler)

    results, outcomes = play(trace, scenario)

    cancelled, refused = sum(results.cancelled.values()), sum(results.refused.values())
    assert results.requests == len(trace) == results.waits.count + cancelled + refused
    assert outcomes.keys() == set(range(1, len(trace) + 1))
    assert sum(waits.count for waits in results.by_band.values()) == results.waits.count
    assert sum(waits.count for waits in results.by_model.values()) == results.waits.count
    assert results.makespan == max((outcome.ended for outcome in outcomes.values()), default=0.0)
    if use is SchedulerName.SERIAL and width == 1 and not cancelled:
        assert results.running == sum(each.run for each in trace)
