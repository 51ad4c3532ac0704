"""An answer that begins before its upstream has said anything."""

from __future__ import annotations

import json

from llamaswap.errors import ShuttingDown
from llamaswap.web.early import DOCUMENT, LAGGING_BYTES, NAMED_EVENTS
from support.web_early import HEAD, Waiting

MODERN = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"


def test_whoever_speaks_first_begins_it() -> None:
    waiting = Waiting()
    before = waiting.early.begun
    assert waiting.client.take() == b""

    waiting.early.say(b": one\n\n")
    waiting.early.say(b": two\n\n")

    assert (before, waiting.early.begun) == (False, True)
    assert waiting.client.take() == HEAD + b": one\n\n: two\n\n"


def test_it_knows_when_something_was_said_last() -> None:
    waiting = Waiting()
    waiting.clock.advance(3)
    assert waiting.early.spoken_at == 0

    waiting.early.say(b": one\n\n")

    assert waiting.early.spoken_at == 3


def test_a_document_has_its_own_head() -> None:
    waiting = Waiting(DOCUMENT)

    waiting.early.say(b"\n")

    data = waiting.client.take()
    assert b"\r\nContent-Type: application/json\r\nX-Accel-Buffering: no\r\n" in data
    assert data.endswith(b"\r\n\r\n\n")


def test_an_upstream_goes_on_in_it_and_says_when_it_speaks_first() -> None:
    waiting, spoke = Waiting(), list[str]()
    waiting.early.say(b": one\n\n")

    stream = waiting.early.go_on(lambda: spoke.append("now"))

    assert stream is not None
    stream.answered(200)
    assert spoke == []
    stream.write(b"data: 1\n\n")
    stream.write(b"data: 2\n\n")
    assert spoke == ["now"]
    assert waiting.told().endswith(b": one\n\ndata: 1\n\ndata: 2\n\n")


def test_one_that_has_not_begun_leaves_the_upstream_its_own_head() -> None:
    waiting, spoke = Waiting(), list[str]()

    assert waiting.early.go_on(lambda: spoke.append("now")) is None

    assert spoke == ["now"] and not waiting.exchange.started


def test_a_refusal_comes_as_an_event_and_once() -> None:
    waiting = Waiting()
    waiting.early.say(b": one\n\n")
    waiting.told()

    first = waiting.early.refuse(ShuttingDown())
    second = waiting.early.refuse(ShuttingDown())

    told = waiting.told()
    assert told.startswith(b'data: {"src":"llama-swap","error":{') and told.count(b"data:") == 1
    assert first == second and first is not None
    assert (first.status, first.headers, first.body) == (503, ((b"Content-Type", b"text/event-stream"),), b"")
    assert waiting.client.is_closed() and not waiting.client.is_aborted()


def test_a_refusal_has_a_name_where_readers_know_events_by_their_names() -> None:
    waiting = Waiting(NAMED_EVENTS)
    waiting.early.say(b": one\n\n")
    waiting.told()

    waiting.early.refuse(ShuttingDown())

    name, _, data = waiting.told().partition(b"\ndata: ")
    assert name == b"event: error" and data.endswith(b"\n\n")
    told = json.loads(data)
    assert (told["type"], told["error"]["code"]) == ("error", "service_unavailable")


def test_a_refusal_of_a_document_is_the_document() -> None:
    waiting = Waiting(DOCUMENT)
    waiting.early.say(b"\n")

    waiting.early.refuse(ShuttingDown())

    body = waiting.client.take().partition(b"\r\n\r\n")[2]
    assert json.loads(body)["error"]["code"] == "service_unavailable"


def test_before_it_has_begun_a_refusal_keeps_its_status() -> None:
    waiting = Waiting()

    assert waiting.early.refuse(ShuttingDown()) is None
    assert not waiting.exchange.started


def test_who_has_left_or_does_not_read_is_not_talked_to() -> None:
    gone, slow = Waiting(), Waiting(request=MODERN)
    before = [gone.early.heard, slow.early.heard]

    gone.client.leave()
    slow.early.say(b": one\n\n")
    slow.client.stall()
    slow.exchange.write(b"x" * (LAGGING_BYTES + 1))

    assert (before, [gone.early.heard, slow.early.heard]) == ([True, True], [False, False])
