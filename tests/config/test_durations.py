"""Go's durations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.config.durations import parse_duration

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("5s", 5 * SECOND),
        ("1m30s", 90 * SECOND),
        (".5m", 30 * SECOND),
        ("5.s", 5 * SECOND),
        ("1h0m0.5s", 3600 * SECOND + SECOND // 2),
        ("6000000µs", 6 * SECOND),
        ("-10ms", -10_000_000),
        ("+1ns", 1),
        ("0", 0),
        ("", None),
        ("10", None),
        ("10 s", None),
        ("s", None),
        (".s", None),
        ("1:30", None),
        ("9999999h", None),
        ("1s" * 100, None),
    ],
)
def test_a_duration_is_read_as_go_reads_it(text: str, nanoseconds: int | None) -> None:
    assert parse_duration(text) == nanoseconds


@given(st.text("0123456789.smhnuµ+-"))
def test_every_text_is_a_duration_or_none(text: str) -> None:
    value = parse_duration(text)
    assert value is None or abs(value) < 2**63
