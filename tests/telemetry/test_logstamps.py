"""The stamps of the log, by the names of Go's layouts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from llamaswap.telemetry.logstamps import LAYOUTS, layout_of

AT = datetime(2026, 11, 3, 15, 4, 5, 120_000, tzinfo=timezone(timedelta(hours=-5), "EST"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ansic", "Tue Nov  3 15:04:05 2026"),
        ("unixdate", "Tue Nov  3 15:04:05 EST 2026"),
        ("rubydate", "Tue Nov 03 15:04:05 -0500 2026"),
        ("rfc822", "03 Nov 26 15:04 EST"),
        ("rfc822z", "03 Nov 26 15:04 -0500"),
        ("rfc850", "Tuesday, 03-Nov-26 15:04:05 EST"),
        ("rfc1123", "Tue, 03 Nov 2026 15:04:05 EST"),
        ("rfc1123z", "Tue, 03 Nov 2026 15:04:05 -0500"),
        ("rfc3339", "2026-11-03T15:04:05-05:00"),
        ("rfc3339nano", "2026-11-03T15:04:05.12-05:00"),
        ("kitchen", "3:04PM"),
        ("stamp", "Nov  3 15:04:05"),
        ("stampmilli", "Nov  3 15:04:05.120"),
        ("stampmicro", "Nov  3 15:04:05.120000"),
        ("stampnano", "Nov  3 15:04:05.120000000"),
    ],
)
def test_a_layout_writes_what_go_writes(name: str, text: str) -> None:
    layout = layout_of(f" {name.upper()} ")

    assert layout is not None
    assert layout(AT) == text


def test_utc_is_z_and_whole_seconds_have_no_fraction() -> None:
    at = datetime(2026, 11, 3, 0, 4, 5, tzinfo=UTC)

    assert LAYOUTS["rfc3339nano"](at) == "2026-11-03T00:04:05Z"
    assert LAYOUTS["kitchen"](at) == "12:04AM"


@pytest.mark.parametrize("name", ["", "none", "rfc"])
def test_anything_else_is_no_stamp(name: str) -> None:
    assert layout_of(name) is None
