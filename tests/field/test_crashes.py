"""Cases from the field: start, health, crash, crash loops."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from support.field import Field, stub
from support.field_call import Call

pytestmark = pytest.mark.integration

DYING = "--die-at {seconds},- --sig 6 --counter {{folder}}/starts"
LONG = {"tokens": 200, "gap": 0.1}


def assert_broke_off(call: Call) -> None:
    """Assert that a stream ended early, and that its client can tell."""
    call.wait(10.0)
    assert call.text, "it had begun"
    assert not call.complete or call.errors
    assert "[DONE]" not in call.events


def test_case_015_a_server_that_aborts_takes_its_stream_along_and_is_started_once_more(
    tmp_path: Path,
) -> None:
    with Field(tmp_path, {"A": DYING.format(seconds=2)}) as field:
        running = field.send("A", stream=True, stub=LONG)
        field.until(lambda: running.text, "the first words")
        waiting = [field.send("A", tag="waiting") for _ in range(5)]
        field.until(lambda: field.daemon.waiting() == 5, "five to wait")

        assert_broke_off(running)
        assert [call.wait(15.0).wrong() for call in waiting] == [""] * 5

        assert field.starts("A") == 2
        failed = [row for row in field.rows(6) if "error_msg" in row]
        assert len(failed) == 1
        assert "died" in failed[0]["error_msg"] or "exited" in failed[0]["error_msg"]


def test_case_015_three_streams_end_with_their_server_and_five_that_follow_start_it_once(
    tmp_path: Path,
) -> None:
    config = {"routing": {"scheduler": {"use": "fifo"}}}
    with Field(tmp_path, {"A": stub(DYING.format(seconds=1.5)), "B": stub()}, config=config) as field:
        running = [field.send("A", stream=True, stub=LONG) for _ in range(3)]
        field.until(lambda: all(call.text for call in running), "the first words of each")
        waiting = [field.send("B") for _ in range(2)]

        for call in running:
            assert_broke_off(call)
        waiting += [field.send("A") for _ in range(3)]
        assert [call.wait(15.0).wrong() for call in waiting] == [""] * 5

        assert field.starts("A") == 2
        assert field.starts("B") == 1
        failed = [row["error_msg"] for row in field.rows(8) if "error_msg" in row]
        assert len(failed) == 3
        assert all("died" in words or "exited" in words for words in failed)


def test_a_request_that_its_server_died_of_is_not_sent_to_the_next_one(tmp_path: Path) -> None:
    with Field(tmp_path, {"A": ""}) as field:
        assert field.chat("A").ok  # over a connection that is kept, and may be stale when it is used again

        lost = field.send("A", stub={"first": 30}, tag="lost")
        field.until(lambda: field.records("arrived", "A", "lost"), "its arrival")
        (arrived,) = field.records("arrived", "A", "lost")
        field.until(lambda: time.monotonic() > arrived["at"] + 1.0, "a second of work")
        os.kill(arrived["pid"], signal.SIGKILL)

        assert lost.wait(10.0).status == 502
        assert "gave no answer" in lost.json["error"]["message"]
        assert field.chat("A").ok
        assert len(field.records("arrived", "A", "lost")) == 1
        assert field.starts("A") == 2
