"""A response of our own that is written bit by bit: log streams, events.

Knows how to frame what it is given; not what it is given.
"""

from __future__ import annotations

from typing import Protocol

from llamaswap.http1.writing import CHUNK, LAST_CHUNK


class Sent(Protocol):
    """The exchange behind a stream."""

    body_bytes: int  # of the body so far, without framing

    @property
    def buffered(self) -> int:
        """Bytes that the kernel has not taken yet."""

    def write(self, data: bytes) -> None:
        """Put bytes on the wire; nothing once the client has left."""

    def finish(self) -> None:
        """The response is complete."""

    def abort(self) -> None:
        """Cut the connection."""


class ResponseStream:
    """The body of a response that has begun; ends quietly when the client leaves."""

    __slots__ = ("_chunked", "_exchange", "_over", "_silent")

    def __init__(self, exchange: Sent, *, chunked: bool, silent: bool) -> None:
        self._exchange = exchange
        self._chunked = chunked
        self._silent = silent  # HEAD and the like: nothing is sent
        self._over = False

    @property
    def buffered(self) -> int:
        """Bytes that the kernel has not taken yet, of this and whatever went before."""
        return self._exchange.buffered

    def answered(self, status: int) -> None:
        """What follows is the body of an upstream's answer, for those who treat some differently."""

    def write(self, data: bytes) -> None:
        """Send a piece; an empty one is none, and one after the end is dropped."""
        if self._over or self._silent or not data:
            return
        self._exchange.body_bytes += len(data)
        if self._chunked:
            data = CHUNK % (len(data), data)
        self._exchange.write(data)

    def finish(self) -> None:
        """End the response properly."""
        if self._over:
            return
        self._over = True
        if self._chunked and not self._silent:
            self._exchange.write(LAST_CHUNK)
        self._exchange.finish()

    def abort(self) -> None:
        """Cut the connection, so that what was sent cannot pass for the whole."""
        if not self._over:
            self._over = True
            self._exchange.abort()
