"""One simulated box: loads, runs, clients who leave, limits."""

from __future__ import annotations

from dataclasses import replace

from llamaswap.scheduling.vocabulary import Band, Term
from llamaswap.simulation.results import Fate
from support.simulation_naive import Ending
from support.simulation_play import box, endings, order, play
from support.simulation_traces import arrival


def test_a_request_waits_for_its_load_and_runs_as_long_as_the_trace_says() -> None:
    results, outcomes = play([arrival(5.0, run=3.0)], box(load=2.0))

    assert endings(outcomes) == {1: Ending(Fate.SERVED, 0.0, 2.0, 5.0)}
    assert (results.waits.count, results.waits.max) == (1, 2.0)
    assert (results.loading, results.running, results.idle) == (2.0, 3.0, 0.0)
    assert (results.loads, results.swaps) == ({"A": 1}, 0)


def test_the_second_request_of_a_model_needs_no_load_and_another_models_swaps() -> None:
    trace = [arrival(0.0, "A"), arrival(10.0, "A"), arrival(20.0, "B")]

    results, outcomes = play(trace, box(load=2.0))

    assert [outcomes[n].began for n in (1, 2, 3)] == [2.0, 10.0, 22.0]
    assert (results.loads, results.swaps) == ({"A": 1, "B": 1}, 1)
    assert results.idle == 7.0 + 9.0


def test_each_model_has_its_own_load_time() -> None:
    scenario = replace(box(load=2.0), loads={"B": 30.0}, resident=("A",))

    _, outcomes = play([arrival(0.0, "A"), arrival(10.0, "B")], scenario)

    assert [outcomes[n].began for n in (1, 2)] == [0.0, 40.0]


def test_a_swap_budget_lets_work_of_a_known_length_pass_once() -> None:
    scenario = replace(box(load=15.0, swap_budget=10.0, swap_affinity_bonus=0), resident=("A",))
    late = [arrival(5.0 + n, "A", run=4.0) for n in range(4)]

    results, outcomes = play(
        [arrival(0.0, "A", run=4.0), arrival(4.5, "A", run=4.0), arrival(5.0, "B"), *late], scenario
    )

    # 4 s each fit twice into 10 s; then B, although two more wait whose model is loaded.
    assert order(outcomes) == [1, 2, 4, 5, 3, 6, 7]
    assert results.reorders[Band.NORMAL][Term.SWAP_BUDGET] == 2


def test_a_client_that_leaves_during_its_own_load_frees_the_box_for_another_pick() -> None:
    trace = [arrival(0.0, "A", cancel_after=1.0), arrival(0.5, "B")]

    results, outcomes = play(trace, box(load=2.0))

    assert endings(outcomes) == {
        1: Ending(Fate.CANCELLED, 0.0, None, 1.0),
        2: Ending(Fate.SERVED, 1.0, 3.0, 4.0),
    }
    assert results.loads == {"A": 1, "B": 1}
    assert results.cancelled[Band.NORMAL] == 1


def test_patience_that_outlasts_the_wait_changes_nothing() -> None:
    trace = [arrival(0.0, "A", cancel_after=3600.0), arrival(0.0, "A", cancel_after=3.0)]

    results, _ = play(trace, box(load=2.0))

    assert sum(results.cancelled.values()) == 0
    assert results.makespan == 4.0


def test_a_limit_that_a_model_has_refuses_what_is_beyond_it() -> None:
    scenario = box()
    one = replace(scenario.config.models["A"], concurrency_limit=2)
    scenario = replace(scenario, config=replace(scenario.config, models={"A": one}))

    results, outcomes = play([arrival(0.0, priority=100)] * 3, scenario)

    assert [outcomes[n].fate for n in (1, 2, 3)] == [Fate.SERVED, Fate.SERVED, Fate.REFUSED]
    assert results.refused == {Band.INTERACTIVE: 1, Band.NORMAL: 0, Band.BATCH: 0}


def test_a_box_that_cannot_keep_up_goes_on_until_everybody_is_served() -> None:
    trace = [arrival(n / 10, run=1.0) for n in range(500)]

    results, _ = play(trace, box(load=0.0))

    assert results.waits.count == 500
    assert results.makespan == 500.0
    assert results.running == results.makespan


def test_under_fifo_a_stream_for_the_loaded_model_keeps_others_out_for_as_long_as_it_lasts() -> None:
    stream = [arrival(n * 0.5, "A", run=1.0) for n in range(200)]
    trace = sorted([*stream, arrival(1.0, "B", 100)], key=lambda each: each.at)

    _, fifo = play(trace, box(load=2.0).baseline())
    _, serial = play(trace, box(load=2.0))

    waited = [outcomes[4].began for outcomes in (fifo, serial)]
    assert trace[3].model == "B"
    assert waited == [204.0, 5.0]


# Bounds.


def test_whoever_would_make_the_queue_of_its_band_too_long_is_refused() -> None:
    trace = [arrival(0.0, run=10.0), *[arrival(1.0, priority=p) for p in (-100, -100, -98, 0, 0, 0)]]

    results, outcomes = play(trace, box(max_queue={"batch": 2, "normal": 0}))

    assert [number for number, each in outcomes.items() if each.fate is Fate.REFUSED] == [4]
    assert outcomes[4].ended == 1.0
    assert results.refused == {Band.INTERACTIVE: 0, Band.NORMAL: 0, Band.BATCH: 1}


def test_whoever_still_waits_when_the_limit_of_its_band_has_passed_is_refused() -> None:
    trace = [arrival(0.0, run=10.0), arrival(1.0, "B"), arrival(2.0, "A"), arrival(6.0, "A", -100)]

    _, outcomes = play(trace, box(load=2.0, max_wait={"normal": 10.5, "batch": 60.0}))

    # The box is free at 12 s.
    assert endings(outcomes)[2] == Ending(Fate.REFUSED, None, None, 11.5)
    assert [outcomes[n].fate for n in (1, 3, 4)] == [Fate.SERVED] * 3


def test_a_limit_is_kept_by_whoever_is_dispatched_in_time_however_long_the_load_takes() -> None:
    _, outcomes = play([arrival(0.0, "A")], box(load=90.0, max_wait={"normal": 5.0}))

    assert outcomes[1].fate is Fate.SERVED


def test_fifo_knows_no_bounds() -> None:
    bounded = box(max_queue={"normal": 1}, max_wait={"normal": 0.5}).baseline()

    results, _ = play([arrival(float(n), "ABC"[n % 3]) for n in range(30)], bounded)

    assert results.waits.count == 30
