"""An upstream's error that comes after the client has been told 200: its body becomes an event.

A client that has begun to read events would take bare JSON for a broken one.
"""

from __future__ import annotations

import json
from typing import Final

import msgspec
from typing_extensions import override

from llamaswap.errors import kind_of
from llamaswap.http1.stream import ResponseStream, Sent
from llamaswap.metering.meter import FAILURES

MOST: Final = 64 * 1024
"""Bytes of an error that are told; the rest is somebody's stack trace."""


class Story(ResponseStream):
    """A response that begins with words of ours and goes on with an upstream's answer."""

    __slots__ = ("_error", "_status")

    def __init__(self, exchange: Sent, *, chunked: bool, silent: bool) -> None:
        super().__init__(exchange, chunked=chunked, silent=silent)
        self._status = 0
        self._error: bytearray | None = None  # of an answer that is an error

    @override
    def answered(self, status: int) -> None:
        self._status = status
        if status >= FAILURES:
            self._error = bytearray()

    @override
    def write(self, data: bytes) -> None:
        if self._error is None:
            super().write(data)
        else:
            self._error += data[: MOST - len(self._error)]

    @override
    def finish(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            super().write(as_event(self._status, bytes(error)))
        super().finish()


def as_event(status: int, body: bytes) -> bytes:
    """Return an error's body as one event: JSON as it is, on one line; anything else in an envelope.

    Args:
        status: the upstream's, 300 or above.
    """
    try:
        is_object = isinstance(msgspec.json.decode(body), dict)
    except (msgspec.DecodeError, RecursionError):
        is_object = False
    if is_object:  # no string of it holds a bare line break
        return b"data: " + body.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n\n"
    kind, code = kind_of(status)
    text = body.decode("utf-8", "replace").strip() or f"upstream answered {status}"
    told = {"error": {"message": text, "type": kind, "param": None, "code": code}}
    return b"data: " + json.dumps(told).encode() + b"\n\n"
