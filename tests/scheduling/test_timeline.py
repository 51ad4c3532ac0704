"""The box from now on: what is left of its jobs, then one ticket after another, or several side by side."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from llamaswap.scheduling.estimates import Estimates
from llamaswap.scheduling.pick_order import Pick
from llamaswap.scheduling.samples import Times, median_and_p90
from llamaswap.scheduling.timeline import Job, Timeline
from llamaswap.scheduling.vocabulary import Ticket
from support.scheduling_queues import LOAD, RUNS, steady_estimates

NOW = 50.0


def job(model: str, since: float, *, loading: bool = False, number: int = 0, brief: bool = False) -> Job:
    ticket = Ticket(number=number, model=model, priority=0, arrived=0.0, brief=brief)
    return Job(ticket=ticket, loading=loading, since=since)


def line(*jobs: Job, width: Mapping[str, int] | None = None, estimates: Estimates | None = None) -> Timeline:
    return Timeline(estimates or steady_estimates(), width or {}, jobs, NOW)


def served(model: str) -> Pick:
    return Pick(number=1, model=model, swap=False, start=False, budget=False)


def loaded(model: str) -> Pick:
    return Pick(number=1, model=model, swap=True, start=True, budget=False)


def seconds(times: Times | None) -> float | None:
    return None if times is None else median_and_p90(times)[0]


def close(*expected: float | None) -> object:
    return pytest.approx(list(expected), abs=0.5)


def test_a_free_box_takes_the_first_one_now() -> None:
    assert seconds(line().dispatch(loaded("B"))) == 0.0


def test_what_is_left_of_a_run_or_of_a_load_with_its_run_comes_first() -> None:
    assert seconds(line(job("D", NOW - 5.0)).free()) == pytest.approx(RUNS["D"] - 5.0, abs=0.3)
    assert seconds(line(job("D", NOW - 1.0, loading=True)).free()) == pytest.approx(
        LOAD - 1.0 + RUNS["D"], abs=0.3
    )


def test_of_a_look_or_a_greeting_only_the_load_takes_time() -> None:
    box = line(job("D", NOW - 1.0, loading=True, brief=True))
    begun = [seconds(box.dispatch(loaded("B"), brief=True)), seconds(box.dispatch(served("B")))]
    box.pass_over(served("A"), brief=True)

    assert begun == close(LOAD - 1.0, 2 * LOAD - 1.0)
    assert seconds(box.free()) == pytest.approx(2 * LOAD - 1.0 + RUNS["B"], abs=0.5)
    assert line(job("D", NOW - 1.0, brief=True)).free() is None  # it may be a WebSocket


def test_a_look_beside_a_wide_model_keeps_nobody_from_its_slot() -> None:
    box = line(width={"B": 2})
    begun = [seconds(box.dispatch(loaded("B"), brief=True))]
    begun += [seconds(box.dispatch(served("B"), brief=brief)) for brief in (False, False, True, False)]

    assert begun == close(0.0, LOAD, LOAD, LOAD + RUNS["B"], LOAD + RUNS["B"])


def test_behind_looks_beside_each_other_nobody_knows_when_one_ends_that_was_never_measured() -> None:
    estimates = Estimates()
    estimates.loaded("B", LOAD)
    box = line(width={"B": 4}, estimates=estimates)
    begun = [box.dispatch(loaded("B"), brief=True), box.dispatch(served("B")), box.dispatch(served("B"))]

    assert [seconds(each) for each in begun] == close(0.0, LOAD, None)


def test_a_clock_that_was_set_back_makes_no_run_longer_than_a_whole_one() -> None:
    assert seconds(line(job("D", NOW + 3600.0)).free()) == pytest.approx(RUNS["D"], abs=0.3)


def test_jobs_that_were_left_side_by_side_must_all_end() -> None:
    assert seconds(line(job("A", NOW), job("D", NOW, number=1)).free()) == pytest.approx(RUNS["D"], abs=0.3)


def test_one_follows_the_other_each_with_its_load() -> None:
    box = line(job("A", NOW))

    begun = [seconds(box.dispatch(pick)) for pick in (served("A"), loaded("B"), served("B"), loaded("A"))]

    assert begun == close(1.0, 2.0, 2.0 + LOAD + 4.0, 2.0 + LOAD + 8.0)


def test_a_width_lets_them_go_together_once_the_model_is_there() -> None:
    box = line(width={"B": 3})

    begun = [seconds(box.dispatch(pick)) for pick in (loaded("B"), served("B"), served("B"), served("B"))]

    assert begun == close(0.0, LOAD, LOAD, LOAD + 4.0)
    assert seconds(box.dispatch(loaded("A"))) == pytest.approx(LOAD + 8.0, abs=0.5)


def test_more_come_beside_the_jobs_that_run_already() -> None:
    box = line(job("B", NOW - 1.0), width={"B": 2})

    assert [seconds(box.dispatch(served("B"))) for _ in range(3)] == close(0.0, 3.0, 4.0)


def test_one_who_goes_by_budget_waits_for_the_others_to_end() -> None:
    box = line(job("B", NOW), width={"B": 4})

    begun = box.dispatch(Pick(number=1, model="B", swap=False, start=False, budget=True))

    assert seconds(begun) == pytest.approx(4.0, abs=0.3)


def test_whoever_is_passed_over_takes_his_time_all_the_same() -> None:
    box = line(width={"C": 3})
    for _ in range(10):
        box.pass_over(loaded("B"))
        box.pass_over(served("C"))

    assert seconds(box.free()) == pytest.approx(10 * (LOAD + 4.0 + 9.0 / 3), rel=0.02)


def test_of_those_far_behind_only_their_numbers_count_and_the_loads_so_far() -> None:
    box = line()
    for pick in (loaded("A"), served("A")) * 5:
        box.pass_over(pick)
    box.pass_over_many({"A": 100, "B": 10, "D": 0}, passed=10)

    expected = 5 * LOAD + 10 + 100 + 40 + 110 / 2 * LOAD
    assert seconds(box.free()) == pytest.approx(expected, rel=0.02)


def test_who_comes_after_those_who_were_passed_over_goes_no_sooner_because_there_is_room_beside() -> None:
    box = line(job("B", NOW), width={"B": 2})
    box.dispatch(served("B"))
    for _ in range(10):
        box.pass_over(served("B"))

    begun = [seconds(box.dispatch(served("B"))) for _ in range(3)]

    assert begun == close(4.0 + 10 / 2 * 4.0, 4.0 + 10 / 2 * 4.0, 8.0 + 10 / 2 * 4.0)


@pytest.mark.parametrize("width", [{}, {"A": 2}])
def test_nothing_is_known_behind_a_run_that_was_never_measured(width: Mapping[str, int]) -> None:
    estimates = steady_estimates("B")
    estimates.loaded("A", LOAD)
    box = line(width=width, estimates=estimates)

    begun = [box.dispatch(pick) for pick in (loaded("B"), loaded("A"), served("A"), loaded("B"))]

    assert [times is not None for times in begun] == [True, True, False, False]


def test_nothing_is_known_beside_a_run_that_was_never_measured() -> None:
    box = line(job("A", NOW), width={"A": 2}, estimates=steady_estimates("B"))

    assert box.dispatch(served("A")) is None
    assert box.free() is None


def test_nothing_is_known_behind_a_load_that_was_never_measured_whoever_is_passed_over() -> None:
    estimates = steady_estimates("B")
    estimates.ran("A", 1.0)
    box = line(estimates=estimates)
    box.pass_over(loaded("A"))

    assert box.free() is None
    assert box.dispatch(served("B")) is None
