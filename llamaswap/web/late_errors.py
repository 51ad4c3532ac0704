"""An upstream's answer that comes after the client has been told 200: what becomes of its body.

A client that has begun to read events passes over bare JSON as if nothing had
come, and one that waits for JSON can do nothing with a page.  So an error becomes
what the client reads, and so does a whole answer for one that reads events.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar, Final

import msgspec
from typing_extensions import override

from llamaswap.http1.stream import ResponseStream, Sent
from llamaswap.metering.failures import failure_text
from llamaswap.metering.meter import FAILURES
from llamaswap.rendering import kind_of

MOST: Final = 64 * 1024
"""Bytes of an error that are told; the rest is somebody's stack trace."""

_ONE_LINE: Final = bytes.maketrans(b"\r\n", b"  ")  # no string of JSON holds a bare line break


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
    """An event stream; an answer that is none becomes one event of it."""

    __slots__ = ("_begun", "_whole")

    WORD: ClassVar[bytes] = b""
    """What an event that holds a whole answer begins with."""
    ALARM: ClassVar[bytes] = b""
    """What one begins with that holds an error."""

    def __init__(self, exchange: Sent, *, chunked: bool, silent: bool) -> None:
        super().__init__(exchange, chunked=chunked, silent=silent)
        self._begun = False
        self._whole = False  # it has begun, and is JSON

    @override
    def write(self, data: bytes) -> None:
        if self._error is None and not self._begun:
            data = data.lstrip()  # blank lines before the first event mean nothing
            if not data:
                return
            self._begun = True
            if data[:1] in b"{[":  # no event begins so, whatever its Content-Type says
                self._whole = True
                super().write(self.WORD + b"data: ")
        super().write(data.translate(_ONE_LINE) if self._whole else data)

    @override
    def finish(self) -> None:
        if self._whole:
            super().write(b"\n\n")
        super().finish()

    @override
    def _shaped(self, status: int, body: bytes) -> bytes:
        return self.ALARM + as_event(status, body)


class NamedStory(Story):
    """An event stream whose readers know events by their names, and pass over what has none."""

    __slots__ = ()

    WORD = b"event: message\n"
    ALARM = b"event: error\n"


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
    return b"data: " + as_json(status, body).translate(_ONE_LINE) + b"\n\n"


def as_json(status: int, body: bytes) -> bytes:
    """Return an error's body as JSON that says so: a document with an `error` as it is.

    One without it gets one, since nobody sees the status any more; anything else is put into an envelope.

    Args:
        status: the upstream's, 300 or above.
    """
    told = _document(body)
    if told is not None and told.get("error"):
        return body
    kind, code = kind_of(status)
    if told is None:
        text = body.decode("utf-8", "replace").strip() or f"upstream answered {status}"
    else:
        text = failure_text(status, body)
    error = json.dumps({"message": text, "type": kind, "param": None, "code": code}).encode()
    if not told:
        return b'{"error": %b}' % error
    return b'%b, "error": %b}' % (body.rstrip()[:-1], error)


def _document(body: bytes) -> dict[str, Any] | None:
    """Return an object of JSON, or None for anything else."""
    try:
        told = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    return told if isinstance(told, dict) else None
