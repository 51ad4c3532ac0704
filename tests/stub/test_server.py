"""Answers at their pace, and what is recorded of them."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llamaswap.stub.life import Mortality
from llamaswap.stub.options import Options, options_of
from llamaswap.stub.records import Record
from llamaswap.stub.server import Server
from llamaswap.stub.switches import make_parser
from llamaswap.stub.wire import Left, Wire

STREAM = b'{"model": "x", "stream": true}'


class Talk:
    """One connection of a stub, and both of its ends."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "record"
        self.client, connection = socket.socketpair()
        self.client.settimeout(5.0)
        self.wire = Wire(connection)

    def serve(self, words: str, request: bytes) -> bool:
        """Send a request and let the stub answer it; returns whether another may follow."""
        self.client.sendall(request)
        return self.go_on(words)

    def go_on(self, words: str) -> bool:
        """Let the stub answer what has been sent."""
        options = self.options(words)
        record = Record(options.record, options.alias)
        server = Server(options, record, Mortality(options.life, record, 0.0), time.monotonic())
        return server._one(self.wire)

    def options(self, words: str) -> Options:
        """What these switches come to."""
        fixed = ["--port", "1", "--alias", "m", "--record", str(self.path)]
        return options_of(make_parser().parse_args([*fixed, *words.split()]), 1)

    def answer(self) -> bytes:
        """What came."""
        return self.client.recv(1 << 20)

    def notes(self, event: str) -> list[dict[str, Any]]:
        """What was recorded."""
        notes = [json.loads(line) for line in self.path.read_text().splitlines()]
        return [note for note in notes if note["event"] == event]


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    """One connection."""
    talk = Talk(tmp_path)
    yield talk
    talk.wire.close()
    talk.client.close()


def post(path: str, body: bytes = b"{}", *fields: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", f"Content-Length: {len(body)}", *fields, "", ""]
    return "\r\n".join(lines).encode() + body


def test_a_stream_is_chunked_and_recorded_when_it_is_over(talk: Talk) -> None:
    assert talk.serve("--tokens 2", post("/v1/chat/completions", STREAM, "X-Tag: t"))

    answer = talk.answer()
    assert answer.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
    assert answer.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    (note,) = talk.notes("request")
    assert (note["path"], note["model"], note["tag"]) == ("/v1/chat/completions", "x", "t")
    assert (note["left"], note["size_bytes"], note["stopping"]) == (False, len(STREAM), False)
    assert note["arrived"] <= note["at"]


def test_a_client_that_leaves_is_recorded_as_such(talk: Talk) -> None:
    talk.client.sendall(post("/v1/chat/completions"))
    talk.client.shutdown(socket.SHUT_WR)

    with pytest.raises(Left):
        talk.go_on("--first 30")

    assert talk.notes("request")[0]["left"] is True


def test_health_is_answered_and_not_recorded(talk: Talk) -> None:
    assert talk.serve("--load 60", b"GET /health HTTP/1.1\r\n\r\n")

    assert talk.answer().startswith(b"HTTP/1.1 503 ")
    assert not talk.path.read_text()


def test_who_asks_too_early_is_recorded_too(talk: Talk) -> None:
    assert talk.serve("--load 60", post("/infill"))

    assert talk.answer().startswith(b"HTTP/1.1 503 ")
    assert len(talk.notes("request")) == 1


@pytest.mark.parametrize("at", [0, 2])
def test_a_stream_that_is_dropped_has_no_end(at: int, talk: Talk) -> None:
    with pytest.raises(Left):
        talk.serve(f"--drop-at {at}", post("/v1/chat/completions", STREAM))

    answer = talk.answer()
    assert answer.count("wörd".encode()) == at
    assert not answer.endswith(b"0\r\n\r\n")
    assert talk.notes("request")[0]["broken_off"] is True


def test_an_error_in_a_stream_is_its_last_event_and_the_stream_ends_well(talk: Talk) -> None:
    assert talk.serve("--error-at 1", post("/v1/messages", STREAM))

    answer = talk.answer()
    assert answer.count("wörd".encode()) == 1
    assert b"event: error\n" in answer
    assert b"message_stop" not in answer
    assert answer.endswith(b"\r\n0\r\n\r\n")


def test_split_events_come_in_pieces_that_no_line_ends_with(talk: Talk) -> None:
    talk.serve("--split --comments 1", post("/v1/completions", STREAM))

    body = talk.answer().partition(b"\r\n\r\n")[2]
    assert body.startswith(b"1\r\n:\r\n3\r\n co\r\n2\r\nmm\r\n")


def test_an_answer_in_pieces_has_the_frame_that_its_request_wishes(talk: Talk) -> None:
    wish = "X-Stub: " + json.dumps({"fill": 5, "sizes": [2], "framing": "close", "type": ""})

    assert not talk.serve("", post("/x", b"", wish))

    head, _, body = talk.answer().partition(b"\r\n\r\n")
    assert b"Connection: close" in head
    assert body == bytes(5)


def test_a_wish_that_makes_no_sense_is_a_bad_request(talk: Talk) -> None:
    assert talk.serve("", post("/x", b"", 'X-Stub: {"nonsense": 1}'))

    assert talk.answer().startswith(b"HTTP/1.1 400 ")


def test_head_gets_no_body(talk: Talk) -> None:
    assert talk.serve("", b"HEAD /x HTTP/1.1\r\n\r\n")

    assert talk.answer().endswith(b"\r\n\r\n")


def test_a_websocket_sends_back_what_it_gets_until_bye(talk: Talk) -> None:
    head = b"GET /ws HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n"
    mask = bytes(4)

    stays = talk.serve("", head + b"\x81\x82" + mask + b"hi" + b"\x81\x83" + mask + b"bye")

    assert not stays
    assert talk.answer().endswith(b"\x81\x02hi\x88\x02\x03\xe8")
    assert talk.notes("request")[0]["left"] is False
