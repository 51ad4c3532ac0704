"""What callers may write into their priority header, and what it means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.calls.priority import ABSENT, UNPARSEABLE, Priority, parse_priority

BIG = 2**63


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        (b"interactive", 100),
        (b"normal", 0),
        (b"batch", -100),
        (b"Batch", -100),
        (b"INTERACTIVE", 100),
        (b" \t batch\t ", -100),
        (b"0", 0),
        (b"-98", -98),
        (b"+5", 5),
        (b" 5 ", 5),
        (b"007", 7),
        (b"-0", 0),
        (b"0" * 400 + b"7", 7),
        (b"%d" % (BIG - 1), BIG - 1),
        (b"%d" % -BIG, -BIG),
    ],
)
def test_a_number_or_an_alias_is_taken_at_its_word(value: bytes, meaning: int) -> None:
    assert parse_priority(value) == Priority(meaning)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b" ",
        b"high",
        b"100.0",
        b"1.5",
        b"1e9",
        b"1_000",
        b"NaN",
        b"inf",
        b"0x10",
        b"0b1",
        b"100, 0",
        b"100 0",
        b"+-5",
        b"- 5",
        b"--5",
        b"+",
        b"-",
        b"batch batch",
        b"\x0b5",
        b"5\n",
        "\uff11\uff10\uff10".encode(),
        "\u0663".encode(),
        b"\xff\xfe",
        b"9" * 400,
        b"9" * 5000,
        b"%d" % BIG,
        b"%d" % (-BIG - 1),
        b"9" * 19,
    ],
)
def test_case_061_anything_else_means_nothing_and_is_never_an_error(value: bytes) -> None:
    assert parse_priority(value) == UNPARSEABLE
    assert UNPARSEABLE.value == 0


def test_an_absent_header_is_no_mistake() -> None:
    assert parse_priority(None) == ABSENT
    assert Priority(0) == ABSENT


@given(st.integers(-BIG, BIG - 1))
def test_every_64_bit_number_is_its_own_value(number: int) -> None:
    assert parse_priority(str(number).encode()) == Priority(number)


@given(st.binary(max_size=40))
def test_no_bytes_at_all_can_raise(value: bytes) -> None:
    assert -BIG <= parse_priority(value).value < BIG
