from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.telemetry.stamps import BadMoment, microseconds, read_moment, write_moment, write_utc

AS_RECORDED = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$")


@given(st.integers(min_value=0, max_value=4_000_000_000_000_000))
def test_a_moment_survives_the_way_to_the_client_and_back_exactly(micros: int) -> None:
    text = write_moment(micros)

    assert AS_RECORDED.match(text)
    assert read_moment(text) == micros


def test_fractions_of_any_length_and_other_zones_are_read() -> None:
    assert read_moment("1970-01-01T00:00:01.5Z") == 1_500_000
    assert read_moment("1970-01-01T00:00:01.123456789Z") == 1_123_456
    assert read_moment("1970-01-01T01:00:01+01:00") == 1_000_000


@pytest.mark.parametrize(
    "text", ["", "nonsense", "2026-01-01", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00", "2026-01-01T00:00Z"]
)
def test_what_is_no_full_timestamp_is_refused(text: str) -> None:
    with pytest.raises(BadMoment):
        read_moment(text)


def test_seconds_become_whole_microseconds() -> None:
    assert microseconds(1.0000004) == 1_000_000


def test_universal_time_is_written_as_such_wherever_the_server_stands() -> None:
    assert write_utc(1_500_000) == "1970-01-01T00:00:01.500000Z"
