"""Cases from the field: stuck swaps, deadlocks, lost wake-ups."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.field import Field, stub
from support.field_call import Call
from support.field_scale import Scale
from support.field_watch import nobody_waits_for_nothing

pytestmark = pytest.mark.integration

SEED = 20261129


def assert_all_ok(calls: list[Call]) -> None:
    """Assert that each ends with a whole answer."""
    assert [call.wait().wrong() for call in calls] == [""] * len(calls)


def meet_unloads(field: Field, rounds: range, slices: int) -> None:
    """Ask for a model at a moment around its unload, again and again.

    Args:
        rounds: their numbers; the moment of each is drawn from its own slice of the time that an unload
            takes, so that few rounds meet all of them too.
        slices: how many there are.
    """
    dice = random.Random(SEED + rounds.start)
    with nobody_waits_for_nothing(field):
        for number in rounds:
            assert_all_ok([field.chat("A")])
            time.sleep(1.0 + 2.2 * (number % slices + dice.random()) / slices)
            assert_all_ok([field.chat("AB"[number % 2], deadline=20.0)])

    assert field.starts() <= 2 * len(rounds)
    assert [note for note in field.records("arrived") if note["stopping"]] == []
    assert len(field.records("request")) == 2 * len(rounds)


@pytest.mark.lasts(seconds=150)
def test_case_001_a_request_that_meets_an_unload_by_ttl_is_served_by_a_fresh_start(
    tmp_path: Path, scale: Scale
) -> None:
    rounds = scale(300, 4)
    daemons = scale(10)  # side by side: a round is mostly waiting
    slow = stub("--term-lag 2", ttl=1)
    with ExitStack() as open_fields, ThreadPoolExecutor(daemons) as players:
        played = []
        for number in range(daemons):
            folder = tmp_path / f"{number}"
            folder.mkdir()
            field = open_fields.enter_context(Field(folder, {"A": slow, "B": slow}))
            mine = range(number * rounds // daemons, (number + 1) * rounds // daemons)
            played.append(players.submit(meet_unloads, field, mine, min(rounds, 20)))
        for player in played:
            player.result()


@pytest.mark.lasts(seconds=70)
@pytest.mark.parametrize("unloading", [False, True], ids=["idle", "unloading"])
def test_case_005_two_models_asked_for_at_once_beside_an_idle_one_are_both_loaded(
    tmp_path: Path, scale: Scale, unloading: bool
) -> None:
    rounds = scale(100, 5)
    with (
        Field(tmp_path, {"A": "", "B": "--term-lag 0.05", "C": ""}) as field,
        nobody_waits_for_nothing(field),
    ):
        for number in range(rounds):
            assert_all_ok([field.chat("A")])
            unload = [field.visit("/unload")] if unloading else []
            both = [field.prepare(name, stream=number % 2 == 0) for name in ("BC", "CB")[number % 2]]
            field.together(unload + both)
            assert_all_ok(both)
            assert all(call.wait().status == 200 for call in unload)

        assert field.starts("B") == field.starts("C") == rounds
        assert field.starts("A") == rounds


@pytest.mark.lasts(seconds=25)
@pytest.mark.parametrize("crowd", [1, 10])
def test_case_007_cold_requests_for_three_models_take_three_starts(
    tmp_path: Path, scale: Scale, crowd: int
) -> None:
    rounds = scale(20, 3)
    with (
        Field(tmp_path, dict.fromkeys("ABC", "--load 0.1")) as field,
        nobody_waits_for_nothing(field),
    ):
        for number in range(1, rounds + 1):
            calls = [field.prepare(name, tag=f"{number}") for _ in range(crowd) for name in "ABC"]
            field.together(calls)
            assert_all_ok(calls)

            assert field.starts() == 3 * number
            assert len(field.records("term")) == 3 * number - 1
            field.unload()
