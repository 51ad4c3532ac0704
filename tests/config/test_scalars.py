"""What plain and tagged scalars mean.  The corpus has many more."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.config.nodes import Plain, Timestamp
from llamaswap.config.scalars import STANDARD, WrongTag, resolve, resolve_tagged, tag_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("nUll", "nUll"),
        ("true", True),
        ("yes", "yes"),
        ("017", 15),
        ("0o17", 15),
        ("0o8", "0o8"),
        ("08", 8.0),
        ("-0x10", -16),
        ("1__0_", 10),
        ("_1", "_1"),
        ("1:30", "1:30"),
        ("1e3", 1000.0),
        ("1e400", "1e400"),
        ("1e-400", 0.0),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 1.8446744073709552e19),
        ("2024-01-02", "2024-01-02T00:00:00Z"),
        ("2024-1-2 3:4:5.250", "2024-01-02T03:04:05.25Z"),
        ("2024-01-02T03:04:05+02:00", "2024-01-02T03:04:05+02:00"),
        ("2024-02-30", "2024-02-30"),
        ("2024-01-02T25:00:00Z", "2024-01-02T25:00:00Z"),
        ("<<", "<<"),
    ],
)
def test_a_plain_scalar_means_what_it_means_in_go(text: str, value: Plain) -> None:
    resolved = resolve(text)
    assert (resolved, type(resolved) is bool) == (value, type(value) is bool)


def test_only_real_dates_are_timestamps() -> None:
    assert isinstance(resolve("2024-02-29"), Timestamp)
    assert not isinstance(resolve("2023-02-29"), Timestamp)


@pytest.mark.parametrize(
    ("tag", "text", "value"),
    [("str", "12", "12"), ("int", "12", 12), ("float", "5", 5.0), ("binary", "aGVs bG8=", "hello")],
)
def test_a_standard_tag_decides(tag: str, text: str, value: Plain) -> None:
    resolved = resolve_tagged(text, STANDARD + tag)
    assert (resolved, type(resolved)) == (value, type(value))


def test_an_unknown_tag_makes_text() -> None:
    assert resolve_tagged("5", "!thing") == "5"


@pytest.mark.parametrize(("tag", "text"), [("int", "x"), ("bool", "yes"), ("binary", "***"), ("null", "x")])
def test_a_text_that_its_tag_does_not_allow_is_refused(tag: str, text: str) -> None:
    with pytest.raises(WrongTag):
        resolve_tagged(text, STANDARD + tag)


@given(st.text())
def test_every_text_means_something(text: str) -> None:
    value = resolve(text)
    assert tag_of(value) in {"null", "bool", "int", "float", "str", "timestamp"}
    assert not isinstance(value, float) or math.isfinite(value) or text.strip("+-").startswith(".")


@given(st.integers(-(2**63), 2**64 - 1))
def test_every_64_bit_number_reads_as_itself(number: int) -> None:
    assert resolve(str(number)) == number
    assert resolve(f"{number:#x}") == number
