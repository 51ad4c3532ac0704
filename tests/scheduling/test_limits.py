"""Slots per model."""

from __future__ import annotations

import pytest

from llamaswap.scheduling.limits import ConcurrencyLimits
from support.scheduling_setup import models_named


def takes(limits: ConcurrencyLimits, model: str, tries: int = 30) -> int:
    return sum(limits.take(model) for _ in range(tries))


def test_a_model_has_as_many_slots_as_it_sets() -> None:
    assert takes(ConcurrencyLimits(models_named("A", {"A": 2}), default=10), "A") == 2


@pytest.mark.parametrize("configured", [0, -1])
def test_a_model_that_sets_no_limit_has_the_default(configured: int) -> None:
    assert takes(ConcurrencyLimits(models_named("A", {"A": configured}), default=10), "A") == 10


def test_without_a_default_there_is_no_limit() -> None:
    assert takes(ConcurrencyLimits(models_named("A"), default=None), "A") == 30


def test_a_slot_given_back_can_be_taken_again() -> None:
    limits = ConcurrencyLimits(models_named("A", {"A": 1}), default=10)
    assert limits.take("A")
    assert not limits.take("A")

    limits.give_back("A")

    assert limits.take("A")
    assert not limits.take("A")


def test_models_do_not_share_slots() -> None:
    limits = ConcurrencyLimits(models_named("AB", {"A": 1, "B": 1}), default=10)

    assert limits.take("A")
    assert limits.take("B")
    assert not limits.take("A")
