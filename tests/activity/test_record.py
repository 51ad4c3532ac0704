from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from llamaswap.activity.record import row_json, timestamp
from llamaswap.metering.usage import Usage
from support.activity_rows import visit

UNREPORTED = Usage(cache_tokens=-1, draft_tokens=-1, draft_acc_tokens=-1, input_tokens=15, output_tokens=33)


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    yield monkeypatch
    monkeypatch.undo()
    time.tzset()


def in_zone(zone: pytest.MonkeyPatch, name: str) -> None:
    zone.setenv("TZ", name)
    time.tzset()


def test_a_row_is_shown_with_all_its_fields(zone: pytest.MonkeyPatch) -> None:
    in_zone(zone, "UTC")
    row = visit(ended=1795954182.7, usage=UNREPORTED, duration_ms=560, metadata={"fifo_priority": "0"})
    assert row_json(37, row) == {
        "id": 37,
        "timestamp": "2026-11-29T12:09:42Z",
        "model": "m1",
        "req_path": "/v1/chat/completions",
        "resp_content_type": "application/json",
        "resp_status_code": 200,
        "tokens": {
            "cache_tokens": -1,
            "draft_tokens": -1,
            "draft_acc_tokens": -1,
            "input_tokens": 15,
            "output_tokens": 33,
            "prompt_per_second": 0.0,
            "tokens_per_second": 0.0,
        },
        "duration_ms": 560,
        "has_capture": False,
        "metadata": {"fifo_priority": "0"},
    }


def test_an_empty_error_and_empty_metadata_are_left_out() -> None:
    assert not {"error_msg", "metadata"} & row_json(1, visit()).keys()
    assert row_json(1, visit(error_msg="Too many requests"))["error_msg"] == "Too many requests"


def test_a_row_lasts_as_long_as_its_upstream_was_busy() -> None:
    assert row_json(1, visit(duration_ms=10, usage=Usage(upstream_ms=1450)))["duration_ms"] == 1450
    assert row_json(1, visit(duration_ms=2000, usage=Usage(upstream_ms=1450)))["duration_ms"] == 2000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("UTC", "2026-11-29T12:09:42Z"),
        ("EST5", "2026-11-29T07:09:42-05:00"),
        ("IST-5:30", "2026-11-29T17:39:42+05:30"),
    ],
)
def test_a_timestamp_is_in_the_servers_zone(zone: pytest.MonkeyPatch, name: str, text: str) -> None:
    in_zone(zone, name)
    assert timestamp(1795954182.999) == text


@pytest.mark.parametrize("seconds", [-(10**18), 10**18])
def test_a_time_that_no_calendar_has_does_not_break_the_list(seconds: int) -> None:
    assert timestamp(seconds)
