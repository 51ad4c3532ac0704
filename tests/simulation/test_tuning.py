"""Sweeping settings."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from llamaswap.config.model import CallerConfig, PrioritiesConfig
from llamaswap.scheduling.vocabulary import Band
from llamaswap.simulation import tuning
from llamaswap.simulation.engine import BadTrace, simulate
from llamaswap.simulation.scenario import box_of
from llamaswap.simulation.tuning import Grid, objectives_of, tune
from support.simulation_traces import afternoon, arrival

BOX = box_of(f"m{n}" for n in range(4))
SMALL = Grid(aging_divisors=(60.0, 5.0), swap_affinity_bonuses=(10, 99), swap_budgets=(0.0, 15.0))


def test_every_combination_is_tried_and_the_defaults_come_first() -> None:
    combinations = list(Grid().combinations())

    assert len(combinations) == len(set(combinations)) == 100
    assert combinations[0] == (60.0, 10, 0.0)


def test_a_bonus_that_an_offset_leaves_no_room_for_is_not_tried() -> None:
    assert {bonus for _, bonus, _ in Grid().combinations(largest_offset=70)} == {10, 0, 5}

    callers = (CallerConfig(name="pro", offset=1),)
    scenario = replace(BOX, config=replace(BOX.config, priorities=PrioritiesConfig(callers=callers)))
    tried = tune(afternoon(20), scenario, SMALL).tried

    assert {candidate.settings.swap_affinity_bonus for candidate in tried} == {10}


def test_each_setting_is_what_simulating_it_alone_gives() -> None:
    tuning = tune(afternoon(300), BOX, SMALL)

    names = [candidate.name for candidate in tuning.tried]
    assert names == ["60/10", "5/10", "60/99", "5/99", "60/10/15", "5/10/15", "60/99/15", "5/99/15"]
    for candidate in tuning.tried:
        alone = simulate(afternoon(300), BOX.under(replace(BOX.scheduler, serial=candidate.settings)))
        assert candidate.results == alone
        assert candidate.objectives == objectives_of(alone)
    assert tuning.current == tuning.tried[0]
    assert tuning.baseline == simulate(afternoon(300), BOX.baseline())


def test_the_front_is_of_those_tried_and_begins_with_the_best_interactive_wait() -> None:
    tuning = tune(afternoon(500), BOX, SMALL)

    front = [candidate.objectives for candidate in tuning.front]
    assert front == sorted(front)
    assert front[0].interactive == min(candidate.objectives.interactive for candidate in tuning.tried)
    assert set(tuning.front_places) <= set(range(len(tuning.tried)))


def test_processes_side_by_side_change_nothing() -> None:
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        told.append((done, total))

    alone = tune(afternoon(200), BOX, SMALL)
    together = tune(afternoon(200), BOX, SMALL, workers=2, progress=progress)

    assert together == alone
    assert told == [(done, 10) for done in range(1, 11)]


def test_where_no_processes_can_be_had_it_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSYS, "no semaphores without /dev/shm")

    alone = tune(afternoon(200), BOX, SMALL)
    monkeypatch.setattr(tuning, "ProcessPoolExecutor", refuse)

    assert tune(afternoon(200), BOX, SMALL, workers=2) == alone


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bad_trace_is_told_whoever_finds_it(workers: int) -> None:
    with pytest.raises(BadTrace, match="nobody"):
        tune([arrival(0.0, "nobody")], BOX, SMALL, workers=workers)


def test_batch_is_judged_by_its_tail_or_by_its_longest_wait() -> None:
    results = simulate(afternoon(500), BOX)
    batch = results.by_band[Band.BATCH]

    assert batch.p95 < batch.max
    assert objectives_of(results).batch == batch.p95
    assert objectives_of(results, longest_batch=True).batch == batch.max


def test_what_is_not_tuned_stays_as_it_is() -> None:
    scenario = BOX.with_serial(width={"m0": 3})

    tuning = tune(afternoon(50), scenario, SMALL)

    assert all(candidate.settings.width == {"m0": 3} for candidate in tuning.tried)
