"""Signs of life for who waits, through the whole daemon."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.web_daemon import WebDaemon
from support.web_talk import Talk

KEPT = """
    keepAlive: {stream: 5s, json: 5s}
    routing: {scheduler: {use: %s}}
    models:
      a: {cmd: serve a, proxy: "http://127.0.0.1:9001"}
      b: {cmd: serve b, proxy: "http://127.0.0.1:9002", sendLoadingState: true}
"""
CHAT = "/v1/chat/completions"


def kept(use: str = "serial") -> WebDaemon:
    """A daemon that keeps who waits company."""
    return WebDaemon(KEPT % use)


def stream(daemon: WebDaemon, model: str = "a", **headers: str) -> Talk:
    """Ask for a streamed chat."""
    return daemon.post(CHAT, {"model": model, "stream": True}, **headers)


def wait(daemon: WebDaemon, seconds: float) -> None:
    """Let time pass in small steps, as it does."""
    daemon.reactor.pump([1 / 16] * int(seconds * 16))


def ready(daemon: WebDaemon) -> None:
    """The child that starts says that it is healthy as soon as it is asked."""
    for _ in range(80):
        if not daemon.prober.questions:
            wait(daemon, 1 / 16)
    daemon.ready()


def said(asked: Talk) -> bytes:
    """The body so far."""
    return b"".join(asked.pieces)


def document(asked: Talk) -> Any:
    """The body, read as a client reads JSON."""
    return json.loads(said(asked))


def test_a_stream_that_waits_is_told_where_it_stands_and_gets_its_answer_in_the_same_stream() -> None:
    daemon = kept()
    upstream = daemon.warm("a")
    daemon.chat("a")
    asked = stream(daemon, "b", X_LlamaSwap_Priority="batch")
    daemon.chat("a")
    wait(daemon, 4.5)
    other = stream(daemon, "a")
    assert other.waits

    wait(daemon, 5.5)
    assert (other.status, other.headers["content-type"]) == (200, "text/event-stream")
    assert (other.headers["cache-control"], other.headers["x-accel-buffering"]) == ("no-cache", "no")
    assert said(other) == b": queued, position 2\n\n"
    for _ in range(2):
        upstream.answers()
    upstream.begins(b"data: {}\n\n", b"data: [DONE]\n\n", b"")

    assert said(other) == b": queued, position 2\n\ndata: {}\n\ndata: [DONE]\n\n"
    assert other.pieces[-1] == b""
    assert b"x-llamaswap" not in other.raw.lower()
    assert not asked.waits  # its load is told


def test_a_load_and_a_slow_upstream_are_bridged_and_nothing_comes_behind_the_first_byte() -> None:
    daemon = kept()
    asked = stream(daemon)
    wait(daemon, 5)
    ready(daemon)
    upstream = daemon.upstream()
    wait(daemon, 5)
    assert said(asked) == b": loading a\n\n: waiting for a\n\n"

    upstream.begins()
    wait(daemon, 5)
    upstream.goes_on(b"data: 1")
    for _ in range(5):
        wait(daemon, 5)
    upstream.goes_on(b"\n\n", b"")

    assert said(asked) == b": loading a\n\n: waiting for a\n\n: waiting for a\n\ndata: 1\n\n"
    assert int(daemon.rows[-1].metadata["serial_load_ms"]) >= 5000


def test_the_stream_may_begin_while_the_upstream_thinks() -> None:
    daemon = kept()
    upstream = daemon.warm()
    asked = stream(daemon, Accept_Encoding="gzip")
    assert all(name != "Accept-Encoding" for name, _ in upstream.fields)

    wait(daemon, 5)
    upstream.begins(b"data: 1\n\n", b"")

    assert said(asked) == b": waiting for a\n\ndata: 1\n\n"


def test_an_upstream_that_answers_in_time_is_heard_in_its_own_words() -> None:
    daemon = kept()
    upstream = daemon.warm()
    asked = stream(daemon)
    wait(daemon, 4.5)

    upstream.answers(b"no", "404 Not Found", kind="text/plain")
    wait(daemon, 20)

    assert (asked.status, asked.body, asked.headers["x-llamaswap-band"]) == (404, b"no", "normal")


def test_the_text_of_a_load_comes_first_and_signs_only_where_it_is_silent() -> None:
    daemon = kept()
    asked = stream(daemon, "b")
    daemon.reactor.pump([1 / 16] * 160)
    assert said(asked).startswith(b"data: ") and b"\n: " not in said(asked)
    ready(daemon)
    upstream = daemon.upstream()

    wait(daemon, 5.5)
    upstream.begins(b"data: 1\n\n", b"")

    assert said(asked).count(b"\n\n: ") == 1
    assert said(asked).endswith(b"\n\n: waiting for b\n\ndata: 1\n\n")


def test_a_whole_answer_comes_behind_white_space() -> None:
    daemon = kept()
    asked = daemon.chat()
    wait(daemon, 5)
    wait(daemon, 5)
    ready(daemon)

    daemon.upstream().answers(b'{"id": 1}')

    assert (asked.status, asked.headers["content-type"]) == (200, "application/json")
    assert said(asked) == b'  {"id": 1}'
    assert document(asked) == {"id": 1}
    assert asked.pieces[-1] == b""


def test_what_may_be_no_json_waits_in_silence() -> None:
    daemon = kept()

    asked = [daemon.post(path, {"model": "a"}) for path in ("/v1/audio/speech", "/v1/images/generations")] + [
        daemon.post("/upstream/a/v1/chat/completions", {"model": "a", "stream": True})
    ]
    wait(daemon, 20)

    assert all(talk.waits for talk in asked)


@pytest.mark.parametrize("streamed", [True, False])
def test_a_failed_load_is_told_in_the_body_and_its_status_in_the_row(*, streamed: bool) -> None:
    daemon = kept()
    asked = stream(daemon) if streamed else daemon.chat()
    wait(daemon, 5)

    daemon.child.exits(1)

    told = said(asked).partition(b"data: ")[2] if streamed else said(asked)
    assert "exited" in json.loads(told)["error"]["message"]
    assert (asked.status, asked.pieces[-1]) == (200, b"")
    (row,) = daemon.rows
    kind = "text/event-stream" if streamed else "application/json"
    assert (row.resp_status_code, row.resp_content_type) == (500, kind)
    wait(daemon, 30)
    assert daemon.engine.when_idle().called


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("body", [b'{"error": {"message": "too long"}}', b"too long"])
def test_an_upstreams_error_is_told_in_the_body(body: bytes, *, streamed: bool) -> None:
    daemon = kept()
    asked = stream(daemon) if streamed else daemon.chat()
    wait(daemon, 5)
    ready(daemon)

    daemon.upstream().answers(body, "400 Bad Request", kind="text/plain")

    told = said(asked).partition(b"data: ")[2] if streamed else said(asked)
    assert json.loads(told)["error"]["message"] == "too long"
    assert daemon.rows[0].resp_status_code == 400


def test_a_refusal_that_comes_at_once_keeps_its_status() -> None:
    daemon = kept()
    asked = stream(daemon, "nobody")

    assert asked.status == 404


def test_the_end_of_the_daemon_is_told() -> None:
    daemon = kept()
    daemon.warm("b")
    daemon.chat("b")
    asked = daemon.chat("a")
    wait(daemon, 5)

    daemon.close()

    assert document(asked)["error"]["code"] == "service_unavailable"


@pytest.mark.parametrize("when", ["queued", "loading", "asked"])
def test_whoever_ends_it_by_its_id_is_named_in_the_stream(when: str) -> None:
    daemon = kept()
    if when == "queued":
        daemon.warm("b")
        daemon.chat("b")
    asked = stream(daemon)
    wait(daemon, 5)
    if when == "asked":
        ready(daemon)
        daemon.upstream()

    daemon.request("POST", f"/api/inflight/{3 if when == 'queued' else 1}/cancel")

    assert b"the request was cancelled" in said(asked)
    assert asked.pieces[-1] == b"" and not asked.end.is_aborted()
    assert next(row for row in daemon.rows if row.model == "a").resp_status_code == 499


@pytest.mark.parametrize("when", ["queued", "loading", "asked", "answering"])
def test_a_client_that_leaves_frees_its_place_and_stops_the_signs(when: str) -> None:
    daemon = kept()
    busy = daemon.warm("b") if when == "queued" else None
    if busy is not None:
        daemon.chat("b")
    asked = stream(daemon)
    wait(daemon, 5)
    if when in ("asked", "answering"):
        ready(daemon)
        upstream = daemon.upstream()
        if when == "answering":
            upstream.begins(b"data: 1\n\n")

    asked.leaves()
    if busy is not None:
        busy.answers()
    elif when == "loading":
        ready(daemon)

    row = next(row for row in daemon.rows if row.model == "a")
    assert row.resp_status_code == (200 if when == "answering" else 499)
    daemon.reactor.advance(0)
    assert daemon.engine.when_idle().called
    assert not any("_beat" in str(call) for call in daemon.reactor.getDelayedCalls())


def test_an_upstream_that_dies_before_it_answers_is_told_and_one_that_dies_later_cuts_it_off() -> None:
    daemon = kept()
    upstream = daemon.warm()
    early = stream(daemon)
    wait(daemon, 5)
    upstream.dies()
    assert early.pieces[-1] == b"" and b'"error":{' in said(early)

    late = stream(daemon)
    wait(daemon, 5)
    upstream = daemon.upstream()
    upstream.begins(b"data: 1\n\n")
    upstream.dies()
    assert late.end.is_aborted() and late.pieces[-1] == b"data: 1\n\n"


def test_under_fifo_it_is_the_same() -> None:
    daemon = kept("fifo")
    daemon.warm("b")
    daemon.chat("b")
    asked = stream(daemon)

    wait(daemon, 5)

    assert said(asked) == b": queued, position 1\n\n"


def test_an_old_proxy_in_front_is_kept_alive_too_and_sees_the_end_by_the_connections() -> None:
    daemon = kept()
    asked = Talk(daemon.connect())
    body = b'{"model":"a","stream":true}'
    asked.end.send(
        b"POST /v1/chat/completions HTTP/1.0\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )

    wait(daemon, 5)
    ready(daemon)
    daemon.upstream().answers(b"data: 1\n\n", kind="text/event-stream")

    assert asked.headers["connection"] == "close" and asked.end.is_closed()
    assert asked.body == b": loading a\n\ndata: 1\n\n"


def test_without_the_setting_everybody_waits_in_silence() -> None:
    daemon = WebDaemon()
    streamed, whole = stream(daemon), daemon.chat()

    wait(daemon, 100)

    assert streamed.waits and whole.waits
