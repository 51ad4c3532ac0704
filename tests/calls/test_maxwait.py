"""How long a request says that it is worth waiting for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.calls.maxwait import LONGEST, parse_max_wait


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b"30", 30.0),
        (b"2.5", 2.5),
        (b"2.", 2.0),
        (b"0", 0.0),
        (b" \t30 ", 30.0),
        (b"0000000000000030", 30.0),
        (b"30s", 30.0),
        (b"1m30s", 90.0),
        (b"1.5h", 5400.0),
        (b"250ms", 0.25),
        ("5µs".encode(), 0.000005),
        (b"0s", 0.0),
        (b"+3s", 3.0),
    ],
)
def test_seconds_and_durations_are_understood(value: bytes, seconds: float) -> None:
    assert parse_max_wait(value) == seconds


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"soon",
        b"-1",
        b"-5s",
        b"1e3",
        b"0x10",
        b"1_000",
        b"nan",
        b"inf",
        b".",
        b"5 s",
        b"30, 40",
        "\uff13\uff10".encode(),
        b"\xff\xfe",
        b"9" * 10,
        b"9" * 5000,
        b"9" * 5000 + b"s",
        b"200000000h",
        b"30s" * 1000,
    ],
)
def test_anything_else_says_nothing(value: bytes | None) -> None:
    assert parse_max_wait(value) is None


@given(st.binary(max_size=40))
def test_whatever_comes_is_a_time_or_nothing(value: bytes) -> None:
    seconds = parse_max_wait(value)

    assert seconds is None or 0 <= seconds <= LONGEST


@given(st.integers(0, 999_999_999), st.integers(0, 999))
def test_a_number_with_a_fraction_is_what_it_says(whole: int, thousandths: int) -> None:
    assert parse_max_wait(f"{whole}.{thousandths:03d}".encode()) == float(f"{whole}.{thousandths:03d}")
