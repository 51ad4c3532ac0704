"""Errors of an upstream that come too late for a status."""

from __future__ import annotations

import json

import pytest

from llamaswap.web.late_errors import MOST, Document, Early, NamedStory, Story, as_event, as_json


class Sent:
    """The exchange behind a stream."""

    def __init__(self) -> None:
        self.body_bytes = 0
        self.buffered = 0
        self.told = b""
        self.finished = False

    def write(self, data: bytes) -> None:
        self.told += data

    def finish(self) -> None:
        self.finished = True

    def abort(self) -> None:
        raise AssertionError("nothing is cut here")


def told_of(status: int, *pieces: bytes, kind: type[Early] = Story) -> bytes:
    """What the client gets behind our words."""
    sent = Sent()
    story = kind(sent, chunked=False, silent=False)
    story.tell(b"data: loading\n\n")
    story.answered(status)
    for piece in pieces:
        story.write(piece)
    story.finish()
    assert sent.finished
    return sent.told.removeprefix(b"data: loading\n\n")


def test_a_good_answer_passes_as_it_comes() -> None:
    assert told_of(200, b"data: 1\n\n", b"data: 2\n\n") == b"data: 1\n\ndata: 2\n\n"


def test_an_error_in_json_becomes_one_event_at_its_end() -> None:
    assert told_of(400, b'{"error":\r\n', b' {"code": 7}}\n') == b'data: {"error":   {"code": 7}} \n\n'


@pytest.mark.parametrize(
    ("body", "message"), [(b"Bad Gateway\n", "Bad Gateway"), (b"", "upstream answered 502")]
)
def test_any_other_error_gets_an_envelope(body: bytes, message: str) -> None:
    event = as_event(502, body)

    error = json.loads(event.removeprefix(b"data: "))["error"]
    assert (error["message"], error["type"], error["code"]) == (message, "server_error", "bad_gateway")
    assert event.endswith(b"}\n\n") and event.count(b"\n") == 2


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"detail": "no such voice"}\n', "no such voice"),
        (b'{"error": null, "n": 1.10}', "404 Not Found"),
        (b" {} ", "404 Not Found"),
    ],
)
def test_a_document_that_does_not_say_that_it_is_an_error_is_told_to(body: bytes, message: str) -> None:
    told = told_of(404, body, kind=Document)

    assert json.loads(told)["error"] == {
        "message": message,
        "type": "invalid_request_error",
        "param": None,
        "code": "not_found",
    }
    assert body.strip()[1:-1] in told
    assert told_of(404, body) == b"data: " + told.replace(b"\n", b" ") + b"\n\n"


def test_an_answer_that_is_no_event_stream_becomes_one_event() -> None:
    told = told_of(200, b"", b"\n ", b' {"id":', b"1,\r\n ", b'"object": "chat.completion"}\n')

    assert told == b'data: {"id":1,   "object": "chat.completion"} \n\n'
    assert told_of(200, b"[1]", kind=NamedStory) == b"event: message\ndata: [1]\n\n"
    assert told_of(200, b": hi\n\n", b'data: {"a":\n', b"data: {}}\n\n").count(b"data") == 2


def test_an_error_has_a_name_where_readers_know_events_by_their_names() -> None:
    told = told_of(500, b'{"error": {"message": "no"}}', kind=NamedStory)

    assert told == b'event: error\ndata: {"error": {"message": "no"}}\n\n'


def test_an_endless_error_is_cut() -> None:
    told = told_of(500, *[b"x" * 1000] * 200)

    assert MOST < len(told) < MOST + 200


@pytest.mark.parametrize("body", [b'{"error":\n {"message": "no"}}', b"no"])
def test_who_waits_for_json_gets_json(body: bytes) -> None:
    told = told_of(502, body, kind=Document)

    assert told == as_json(502, body)
    assert json.loads(told)["error"]["message"] == "no"
    assert told_of(200, b"[1]", kind=Document) == b"[1]"


@pytest.mark.parametrize("status", [200, 500])
def test_it_tells_when_the_answer_begins_and_only_then(status: int) -> None:
    sent, begun = Sent(), list[int]()
    story = Story(sent, chunked=False, silent=False)
    story.on_answer = lambda: begun.append(len(sent.told))
    story.tell(b": 1\n\n")
    story.answered(status)
    story.tell(b": 2\n\n")
    assert begun == []

    story.write(b"data: 1\n\n")
    story.finish()

    assert begun == [len(b": 1\n\n: 2\n\n")]
