"""What the APIs of model servers look like when they stream.

Pure: which events there are, and their bytes.  When each is sent is the server's business.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from llamaswap.stub import texts
from llamaswap.stub.options import Manner

ODD_SIZES = (1, 3, 2, 7, 1, 5, 13, 2, 29)
"""Sizes of pieces that no line, field or character ends with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event."""

    data: dict[str, Any] | str
    name: str = ""
    token: int | None = None  # which one it brings, if it brings one

    def encode(self, manner: Manner, stamp: float | None = None) -> bytes:
        """Its bytes; `stamp` is told in it."""
        data = self.data
        if stamp is not None and isinstance(data, dict):
            data = {**data, "sent": stamp}
        body = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        space = "" if manner.tight else " "
        named = f"event:{space}{self.name}\n" if self.name else ""
        lines = f"{named}data:{space}{body}\n\n"
        return (lines.replace("\n", "\r\n") if manner.crlf else lines).encode()


def of_chat(model: str, manner: Manner) -> Iterator[Event]:
    """A chat completion, in chunks."""
    head = texts.opened(model, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    for number, word in enumerate(texts.words(manner)):
        delta = {"content": word} if number else {"role": "assistant", "content": word}
        yield Event(data=chunk(delta), token=number)
    yield Event(data=chunk({}, "stop"))
    yield from _last(head, manner)


def of_completion(model: str, manner: Manner) -> Iterator[Event]:
    """A completion in OpenAI's old form."""
    head = texts.opened(model, "text_completion")
    for number, word in enumerate(texts.words(manner)):
        yield Event(
            data={**head, "choices": [{"index": 0, "text": word, "finish_reason": None}]}, token=number
        )
    yield from _last(head, manner)


def _last(head: dict[str, Any], manner: Manner) -> Iterator[Event]:
    if texts.counts(manner):
        yield Event(data={**head, "choices": [], **texts.counts(manner)})
    if manner.done:
        yield Event(data="[DONE]")


def of_native(model: str, manner: Manner) -> Iterator[Event]:
    """llama-server's own."""
    for number, word in enumerate(texts.words(manner)):
        yield Event(data={"content": word, "stop": False}, token=number)
    yield Event(data={**texts.native(model, manner), "content": ""})


def of_message(model: str, manner: Manner) -> Iterator[Event]:
    """A message as Anthropic streams it."""

    def named(name: str, token: int | None = None, **facts: Any) -> Event:
        return Event(name=name, data={"type": name, **facts}, token=token)

    spent = texts.spent(manner)
    begun = {**texts.message(model, manner), "content": [], "stop_reason": None}
    begun["usage"] = {**spent, "output_tokens": 0} if spent else {}
    yield named("message_start", message=begun)
    yield named("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for number, word in enumerate(texts.words(manner)):
        delta = {"type": "text_delta", "text": word}
        yield named("content_block_delta", number, index=0, delta=delta)
    yield named("content_block_stop", index=0)
    yield named("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage=spent)
    yield named("message_stop")


def of_response(model: str, manner: Manner) -> Iterator[Event]:
    """An answer of the Responses API."""
    whole = texts.response(model, manner)

    def named(name: str, token: int | None = None, **facts: Any) -> Event:
        return Event(name=name, data={"type": name, **facts}, token=token)

    yield named("response.created", response={**whole, "status": "in_progress", "output": []})
    for number, word in enumerate(texts.words(manner)):
        place = {"item_id": "item_stub", "output_index": 0, "content_index": 0}
        yield named("response.output_text.delta", number, delta=word, **place)
    yield named("response.completed", response=whole)


STREAMED: dict[str, Callable[[str, Manner], Iterator[Event]]] = {
    "/v1/chat/completions": of_chat,
    "/v1/completions": of_completion,
    "/completion": of_native,
    "/infill": of_native,
    "/v1/messages": of_message,
    "/v1/responses": of_response,
}
"""What streams from which path."""


def error_event(path: str, words: str) -> Event:
    """The event that tells of a failure after the head, in the form of a path's API."""
    told = texts.error(500, words)
    return Event(name="error", data={"type": "error", **told}) if path == "/v1/messages" else Event(data=told)


def big_event(size: int, manner: Manner) -> Event:
    """An event whose line has so many bytes, its end not counted."""
    bare = Event(data={"choices": [], "padding": ""}).encode(manner).rstrip(b"\r\n")
    return Event(data={"choices": [], "padding": "x" * max(0, size - len(bare))})


def pieces(data: bytes, sizes: tuple[int, ...]) -> Iterator[bytes]:
    """Cut data into pieces of these sizes, over and over; uncut without any."""
    at, number = 0, 0
    while at < len(data):
        size = sizes[number % len(sizes)] if sizes else len(data)
        yield data[at : at + size]
        at, number = at + size, number + 1
