"""Streams."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.stub import events
from llamaswap.stub.events import Event
from llamaswap.stub.options import Manner


def streamed(path: str, manner: Manner) -> list[Event]:
    return list(events.STREAMED[path]("m", manner))


def facts(event: Event) -> dict[str, Any]:
    assert isinstance(event.data, dict)
    return event.data


@pytest.mark.parametrize("path", sorted(events.STREAMED))
def test_a_stream_brings_each_token_once_and_in_order(path: str) -> None:
    assert [event.token for event in streamed(path, Manner(tokens=3)) if event.token is not None] == [0, 1, 2]


def test_a_chat_ends_with_its_counts_and_done() -> None:
    counts, done = streamed("/v1/chat/completions", Manner(tokens=1))[-2:]

    assert facts(counts)["usage"]["completion_tokens"] == 1
    assert facts(counts)["choices"] == []
    assert done.data == "[DONE]"


def test_done_and_counts_can_be_left_out() -> None:
    manner = Manner(tokens=1, done=False, usage={}, timings={})

    (last,) = streamed("/v1/completions", manner)

    assert last.token == 0


def test_a_message_is_named_events_with_usage_at_both_ends() -> None:
    told = streamed("/v1/messages", Manner(tokens=2))

    assert [event.name for event in told] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert facts(told[0])["message"]["usage"] == {"input_tokens": 3, "output_tokens": 0}
    assert facts(told[5])["usage"]["output_tokens"] == 2


def test_a_response_is_completed_with_its_usage() -> None:
    told = streamed("/v1/responses", Manner(tokens=1))

    assert [event.name for event in told] == [
        "response.created",
        "response.output_text.delta",
        "response.completed",
    ]
    assert facts(told[2])["response"]["usage"] == {"input_tokens": 3, "output_tokens": 1}


def test_lines_end_as_asked_for() -> None:
    event = Event(name="ping", data={"a": 1})

    assert event.encode(Manner()) == b'event: ping\ndata: {"a": 1}\n\n'
    assert event.encode(Manner(crlf=True, tight=True)) == b'event:ping\r\ndata:{"a": 1}\r\n\r\n'
    assert json.loads(event.encode(Manner(), 1.5).split(b"data: ")[1]) == {"a": 1, "sent": 1.5}


def test_an_error_has_the_form_of_its_api() -> None:
    assert events.error_event("/v1/messages", "x").name == "error"
    assert facts(events.error_event("/v1/chat/completions", "x")).keys() == {"error"}


@given(size=st.integers(60, 5000), tight=st.booleans(), crlf=st.booleans())
def test_a_big_line_is_exactly_so_long(size: int, tight: bool, crlf: bool) -> None:
    manner = Manner(tight=tight, crlf=crlf)

    line = events.big_event(size, manner).encode(manner).rstrip(b"\r\n")

    assert len(line) == size


@given(data=st.binary(max_size=300), sizes=st.lists(st.integers(1, 9), max_size=4).map(tuple))
def test_pieces_are_the_whole_in_the_sizes_asked_for(data: bytes, sizes: tuple[int, ...]) -> None:
    cut = list(events.pieces(data, sizes))

    assert b"".join(cut) == data
    assert all(len(piece) == sizes[number % len(sizes)] for number, piece in enumerate(cut[:-1]) if sizes)
    assert b"" not in cut
