"""Cases from the field: stuck swaps, deadlocks, lost wake-ups."""

from __future__ import annotations

import random
import time
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


def test_case_001_a_request_that_meets_an_unload_by_ttl_is_served_by_a_fresh_start(
    tmp_path: Path, scale: Scale
) -> None:
    dice = random.Random(SEED)
    rounds = scale(300, 4)
    slices = min(rounds, 20)
    slow = stub("--term-lag 2", ttl=1)
    with Field(tmp_path, {"A": slow, "B": slow}) as field, nobody_waits_for_nothing(field):
        for number in range(rounds):
            assert_all_ok([field.chat("A")])
            # The term of each moment is drawn from its own slice, so that few rounds meet all of them too.
            time.sleep(1.0 + 2.2 * (number % slices + dice.random()) / slices)
            assert_all_ok([field.chat("AB"[number % 2], deadline=20.0)])

        assert field.starts() <= 2 * rounds
        assert [note for note in field.records("arrived") if note["stopping"]] == []
        assert len(field.records("request")) == 2 * rounds


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
