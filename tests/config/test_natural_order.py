"""The order of set names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llamaswap.config.natural_order import natural_order
from llamaswap.config.nodes import Plain


def ordered(*keys: Plain) -> list[Plain]:
    return sorted(keys, key=natural_order)


def test_numbers_in_names_count_as_numbers() -> None:
    assert ordered("set10", "set9", "alpha", "set") == ["alpha", "set", "set9", "set10"]


def test_letters_come_after_signs_but_before_them_behind_a_digit() -> None:
    assert ordered("ab", "a_", "a1b", "a1_") == ["a_", "a1b", "a1_", "ab"]


def test_names_that_are_numbers_come_first_by_value() -> None:
    assert ordered("08", 10, 9, "a", True) == [True, 9, 10, "08", "a"]


def test_leading_zeros_break_ties_by_length() -> None:
    assert ordered("a01", "a1", "a10", "a010") == ["a1", "a01", "a10", "a010"]


@given(st.lists(st.text("ab019_", max_size=5), unique=True, max_size=4))
def test_the_first_is_first_whoever_it_is_compared_with(names: list[str]) -> None:
    keys = [natural_order(name) for name in names]
    assert all((one < other) != (other < one) for one in keys for other in keys if one is not other)
