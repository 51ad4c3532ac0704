"""An upstream's error that comes after the client has been told 200: what becomes of its body.

A client that has begun to read events would take bare JSON for a broken one,
and one that waits for JSON can do nothing with a page.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

import msgspec
from typing_extensions import override

from llamaswap.http1.stream import ResponseStream, Sent
from llamaswap.metering.meter import FAILURES
from llamaswap.rendering import kind_of

MOST: Final = 64 * 1024
"""Bytes of an error that are told; the rest is somebody's stack trace."""


class Early(ResponseStream):
    """A response that begins with words of ours (`tell`) and goes on with an upstream's answer (`write`)."""

    __slots__ = ("_error", "_status", "on_answer")

    def __init__(self, exchange: Sent, *, chunked: bool, silent: bool) -> None:
        super().__init__(exchange, chunked=chunked, silent=silent)
        self.on_answer: Callable[[], None] | None = None  # called before the first byte of the answer
        self._status = 0
        self._error: bytearray | None = None  # of an answer that is an error

    def tell(self, words: bytes) -> None:
        """Say something ourselves; before the answer only."""
        super().write(words)

    @override
    def answered(self, status: int) -> None:
        self._status = status
        if status >= FAILURES:
            self._error = bytearray()

    @override
    def write(self, data: bytes) -> None:
        if self._error is not None:
            self._error += data[: MOST - len(self._error)]
            return
        if self.on_answer is not None:
            self._begin_answer()
        super().write(data)

    @override
    def finish(self) -> None:
        self._begin_answer()
        error, self._error = self._error, None
        if error is not None:
            super().write(self._shaped(self._status, bytes(error)))
        super().finish()

    def _begin_answer(self) -> None:
        on_answer, self.on_answer = self.on_answer, None
        if on_answer is not None:
            on_answer()

    def _shaped(self, status: int, body: bytes) -> bytes:
        """Return an error's body as this client can read it."""
        raise NotImplementedError


class Story(Early):
    """An event stream."""

    __slots__ = ()

    @override
    def _shaped(self, status: int, body: bytes) -> bytes:
        return as_event(status, body)


class Document(Early):
    """One JSON document."""

    __slots__ = ()

    @override
    def _shaped(self, status: int, body: bytes) -> bytes:
        return as_json(status, body)


def as_event(status: int, body: bytes) -> bytes:
    """Return an error's body as one event, on one line.

    Args:
        status: the upstream's, 300 or above.
    """
    # No string of JSON holds a bare line break.
    return b"data: " + as_json(status, body).replace(b"\r", b" ").replace(b"\n", b" ") + b"\n\n"


def as_json(status: int, body: bytes) -> bytes:
    """Return an error's body as JSON: a document as it is, anything else in an envelope.

    Args:
        status: the upstream's, 300 or above.
    """
    try:
        is_object = isinstance(msgspec.json.decode(body), dict)
    except (msgspec.DecodeError, RecursionError):
        is_object = False
    if is_object:
        return body
    kind, code = kind_of(status)
    text = body.decode("utf-8", "replace").strip() or f"upstream answered {status}"
    told = {"error": {"message": text, "type": kind, "param": None, "code": code}}
    return json.dumps(told).encode()
