"""Rules that find a model or a priority."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.simulation.rules import Applied, Choice, Rule, everyone


def test_without_a_rule_every_record_has_to_say_it_itself() -> None:
    assert Applied[int](None, "0").of("anything") is None


def test_a_rule_for_everyone_looks_at_nothing() -> None:
    rule = Applied(everyone(Choice(("chat",))), "0")

    assert (rule.source, rule.of(""), rule.of("x")) == (None, "chat", "chat")


def test_a_value_comes_before_a_pattern_and_the_first_pattern_that_fits_counts() -> None:
    values = {"API*": Choice((1,)), "API log": Choice((2,)), "*": Choice((3,))}
    rule = Applied(Rule(source="Log Type", values=values), "0")

    assert [rule.of(value) for value in ("API log", "API call", "", "other")] == [2, 1, 3, 3]


def test_what_no_value_fits_comes_to_the_default() -> None:
    known = {"a": Choice((1,))}

    assert Applied(Rule(source="x", values=known, default=Choice((9,))), "0").of("b") == 9
    assert Applied(Rule(source="x", values=known), "0").of("b") is None


def test_lots_are_as_frequent_as_their_shares() -> None:
    rule = Applied(everyone(Choice((100, 0), (0.3, 0.7))), "seed")

    drawn = Counter(rule.of("") for _ in range(10_000))

    assert drawn[100] / 10_000 == pytest.approx(0.3, abs=0.02)
    assert set(drawn) == {100, 0}


@given(st.integers(), st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5))
def test_the_same_seed_draws_the_same_lots(seed: int, shares: list[float]) -> None:
    rule = everyone(Choice(tuple(range(len(shares))), tuple(shares)))
    first, second = Applied(rule, f"{seed}"), Applied(rule, f"{seed}")

    drawn = [first.of("") for _ in range(50)]

    assert drawn == [second.of("") for _ in range(50)]
    assert all(one is not None and 0 <= one < len(shares) for one in drawn)
