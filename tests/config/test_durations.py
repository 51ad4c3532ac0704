"""Go's durations."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.config.durations import WAIT, duration_text, parse_duration, seconds_of
from llamaswap.config.mistakes import Place, Report
from llamaswap.config.nodes import Node, Scalar, Sequence, Timestamp
from support.config_checks import lines

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


@given(st.text("0123456789.smhnuµ+-", max_size=12))
def test_the_schema_takes_what_can_be_waited_for(text: str) -> None:
    value = parse_duration(text)
    if not text.startswith("-"):
        assert (re.search(WAIT, text) is not None) == (value is not None)
    else:
        assert re.search(WAIT, text) is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("30s", 30.0),
        ("1m30s", 90.0),
        ("0", 0.0),
        ("-0s", 0.0),
        ("1ns", 1e-9),
        (30, 30.0),
        (2.5, 2.5),
        (0, 0.0),
    ],
)
def test_a_wait_is_a_duration_or_a_number_of_seconds(value: str | float, seconds: float) -> None:
    report = Report()
    assert seconds_of(Scalar(Place("f"), value), "p", report) == seconds
    assert lines(report) == []


@pytest.mark.parametrize(
    ("node", "shown"),
    [
        (Scalar(Place("f"), "30"), "'30'"),
        (Scalar(Place("f"), "-1s"), "'-1s'"),
        (Scalar(Place("f"), -1), "-1"),
        (Scalar(Place("f"), True), "true"),
        (Scalar(Place("f"), float("nan")), ".nan"),
        (Scalar(Place("f"), float("inf")), ".inf"),
        (Scalar(Place("f"), 2**64 - 1), "18446744073709551615"),
        (Scalar(Place("f"), Timestamp("2024-01-02T00:00:00Z")), "'2024-01-02T00:00:00Z'"),
        (Sequence(Place("f")), "a list"),
    ],
)
def test_anything_else_is_a_mistake(node: Node, shown: str) -> None:
    report = Report()
    assert seconds_of(node, "p", report) is None
    assert lines(report) == [f"f:1:1: p: expected seconds from 0 or a duration like 30s, got {shown}"]


def test_null_is_not_given() -> None:
    report = Report()
    assert seconds_of(Scalar(Place("f"), None), "p", report) is None
    assert lines(report) == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (-1.0, "0s"),
        (0.000087, "87µs"),
        (0.0125, "12.5ms"),
        (0.999999, "999.999ms"),
        (1.0, "1s"),
        (61.5, "1m1.5s"),
        (120.0, "2m0s"),
        (3600.0, "1h0m0s"),
        (90061.000001, "25h1m1.000001s"),
    ],
)
def test_a_time_is_written_as_go_does(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@given(st.integers(0, 10**12))
def test_what_is_written_is_the_time(micros: int) -> None:
    nanos = parse_duration(duration_text(micros / 1_000_000))

    assert nanos == micros * 1_000
