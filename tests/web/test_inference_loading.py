"""What a streamed chat is told while its model loads, through the whole daemon."""

from __future__ import annotations

import json

import pytest

from support.web_daemon import WebDaemon
from support.web_talk import Talk

TALKING = """
    routing: {scheduler: {use: %s}}
    sendLoadingState: true
    models:
      a: {cmd: serve a, proxy: "http://127.0.0.1:9001"}
      b: {cmd: serve b, proxy: "http://127.0.0.1:9002", concurrencyLimit: 2}
"""
CHAT = "/v1/chat/completions"


def talking(use: str = "serial") -> WebDaemon:
    """A daemon that tells of loads."""
    return WebDaemon(TALKING % use)


def stream(daemon: WebDaemon, model: str = "a", **headers: str) -> Talk:
    """Ask for a streamed chat."""
    return daemon.post(CHAT, {"model": model, "stream": True}, **headers)


def told(asked: Talk) -> str:
    """All that was said of the load."""
    words = ""
    for event in b"".join(asked.pieces).split(b"\n\n"):
        if b"reasoning_content" in event:
            words += json.loads(event.removeprefix(b"data: "))["choices"][0]["delta"]["reasoning_content"]
    return words


def pass_time(daemon: WebDaemon, seconds: float) -> None:
    """Let time pass in small steps."""
    daemon.reactor.pump([1 / 16] * int(seconds * 16))


def test_a_load_is_told_and_the_answer_follows_in_the_same_stream() -> None:
    daemon = talking()
    asked = stream(daemon)
    assert (asked.status, asked.headers["content-type"]) == (200, "text/event-stream")
    pass_time(daemon, 2)

    daemon.ready()
    upstream = daemon.upstream()
    upstream.begins(b"data: {}\n\n")
    upstream.goes_on(b"data: [DONE]\n\n", b"")

    assert told(asked).startswith("━━━━━\nllama-swap loading model: a\n")
    assert "Done! (2.00s)" in told(asked)
    assert b"".join(asked.pieces).endswith(b"data: {}\n\ndata: [DONE]\n\n")
    assert asked.pieces[-1] == b""
    (row,) = daemon.rows
    assert (row.resp_status_code, row.error_msg, row.metadata["serial_load_ms"]) == (200, "", "2000")


def test_a_ready_model_answers_as_ever() -> None:
    daemon = talking()
    upstream = daemon.warm()

    asked = stream(daemon)
    upstream.answers(b"{}")

    assert (asked.headers["content-type"], asked.json) == ("application/json", {})


def test_who_did_not_ask_for_a_stream_is_told_nothing() -> None:
    daemon = talking()

    asked = daemon.chat()
    pass_time(daemon, 2)

    assert asked.waits


def test_the_place_in_the_queue_is_told_and_followed() -> None:
    daemon = talking()
    upstream = daemon.warm("a")
    daemon.chat("a")
    daemon.chat("a")
    asked = stream(daemon, "b")
    pass_time(daemon, 3)
    assert "Queue position: #2 " in told(asked)

    upstream.answers()
    pass_time(daemon, 2)
    assert "Queue position: #1 " in told(asked)
    upstream.answers()
    pass_time(daemon, 2)
    assert told(asked).count("Queue position") == 2


def test_the_place_counts_those_who_are_more_urgent_only() -> None:
    daemon = talking()
    daemon.warm("a")
    daemon.chat("a")
    daemon.chat("b", X_LlamaSwap_Priority="batch")
    asked = stream(daemon, "b", X_LlamaSwap_Priority="interactive")

    pass_time(daemon, 2)

    assert "Queue position: #1 " in told(asked)


def test_under_fifo_too_a_place_is_told() -> None:
    daemon = talking("fifo")
    daemon.warm("a")
    daemon.chat("a")
    daemon.chat("b")
    asked = stream(daemon, "b")

    pass_time(daemon, 2)

    assert "Queue position: #2 " in told(asked)


def test_one_that_goes_at_once_has_no_place() -> None:
    daemon = talking("fifo")
    asked = stream(daemon, "a")

    pass_time(daemon, 3)

    assert "Queue" not in told(asked)


def test_one_who_is_not_admitted_gets_a_status_and_no_stream() -> None:
    daemon = talking()
    for _ in range(2):
        stream(daemon, "b")

    asked = stream(daemon, "b")

    assert (asked.status, asked.headers["retry-after"]) == (429, "1")
    assert asked.json["error"]["code"] == "concurrency_limit"


def test_a_failed_load_is_told_as_data_and_the_row_says_what_it_was() -> None:
    daemon = talking()
    asked = stream(daemon)
    daemon.child.says("out of memory")

    daemon.child.exits(1)

    *_, last, _ = b"".join(asked.pieces).split(b"\n\n")
    assert "out of memory" in json.loads(last.removeprefix(b"data: "))["error"]["message"]
    assert asked.pieces[-1] == b""
    assert not asked.end.is_aborted()
    (row,) = daemon.rows
    assert (row.resp_status_code, row.resp_content_type) == (500, "text/event-stream")
    assert "out of memory" in row.error_msg


def test_a_refused_connection_is_told_as_data() -> None:
    daemon = talking()
    asked = stream(daemon)
    daemon.ready()

    daemon.refuses()

    assert b"upstream gave no answer" in b"".join(asked.pieces)
    assert asked.pieces[-1] == b""
    assert daemon.rows[0].resp_status_code == 502
    assert daemon.engine.when_idle().called


def test_the_status_of_an_upstream_error_is_lost_to_the_client_but_not_to_the_row() -> None:
    daemon = talking()
    asked = stream(daemon)
    daemon.ready()

    daemon.upstream().answers(b'{"error": {"message": "too long"}}', "400 Bad Request")

    assert asked.status == 200
    assert b'{"error": {"message": "too long"}}' in b"".join(asked.pieces)
    assert asked.pieces[-1] == b""
    (row,) = daemon.rows
    assert (row.resp_status_code, row.error_msg) == (400, "too long")


def test_an_upstream_that_dies_cuts_the_story_off() -> None:
    daemon = talking()
    asked = stream(daemon)
    daemon.ready()
    upstream = daemon.upstream()
    upstream.begins(b"data: {}\n\n")

    upstream.dies()

    assert asked.end.is_aborted()
    assert asked.pieces[-1] != b""
    assert "upstream died" in daemon.rows[0].error_msg


@pytest.mark.parametrize("when", ["queued", "loading", "answering"])
def test_a_client_that_leaves_ends_the_story(when: str) -> None:
    daemon = talking()
    if when == "queued":
        daemon.chat("b")
    asked = stream(daemon)
    pass_time(daemon, 1)
    if when == "answering":
        daemon.ready()
        daemon.upstream().begins(b"data: {}\n\n")
    asked.leaves()
    if when == "queued":
        daemon.child.exits(1)

    row = next(row for row in daemon.rows if row.model == "a")
    assert row.resp_status_code == (200 if when == "answering" else 499)
    assert ("left" if when == "answering" else when) in row.error_msg
    pass_time(daemon, 1)
    assert b'"requests\\":[]' in daemon.get("/api/events").body
    assert daemon.engine.when_idle().called


def test_a_stop_tells_who_is_told_stories() -> None:
    daemon = talking()
    daemon.chat("b")
    asked = stream(daemon)

    daemon.close()

    assert b"shutting down" in b"".join(asked.pieces)
    assert asked.pieces[-1] == b""
    assert daemon.rows[0].resp_status_code == 503


def test_a_place_is_found_quickly_among_very_many() -> None:
    daemon = talking()
    daemon.warm("b")
    daemon.chat("b")
    asked = [stream(daemon, "a") for _ in range(300)]

    pass_time(daemon, 3)

    assert "Queue position: #300 " in told(asked[-1])
