"""Numbers as traces write them."""

from __future__ import annotations

import pytest

from llamaswap.simulation.records import BadLine, number, shown, tokens


def test_numbers_from_0_are_read() -> None:
    assert [number(text, "x") for text in ("0", "4.5", " 7 ", "1e3")] == [0.0, 4.5, 7.0, 1000.0]


@pytest.mark.parametrize("text", ["", "x", "-1", "nan", "inf", "1,5"])
def test_what_is_no_number_from_0_is_named(text: str) -> None:
    with pytest.raises(BadLine, match="run_s: expected a number"):
        number(text, "run_s")


def test_tokens_are_whole_and_not_without_end() -> None:
    assert tokens("12.0", "x") == 12
    with pytest.raises(BadLine, match="tokens are no request"):
        tokens("1e12", "x")


def test_a_long_text_is_cut_where_it_is_quoted() -> None:
    assert shown("a" * 50) == repr("a" * 37 + "...")
