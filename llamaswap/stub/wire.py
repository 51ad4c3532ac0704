"""One connection of a stub: requests in, bytes out, and the moment its client leaves.

Knows HTTP/1.1 as far as a proxy speaks it; nothing of what is answered.
"""

from __future__ import annotations

import gzip
import select
import socket
import time
from dataclasses import dataclass

PIECE = 1 << 16
RESET = b"\1\0\0\0\0\0\0\0"
"""Linger on, for no time: the kernel sends a reset."""


class Left(Exception):
    """The client has closed its side, in whatever way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, its body read."""

    method: str
    target: str
    protocol: str
    headers: tuple[tuple[str, str], ...]  # as they came
    body: bytes

    def get(self, name: str) -> str:
        """The first value of a field; its name in lower case.  '' for none."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def plain(self) -> bytes:
        """The body, unpacked if it was packed."""
        return gzip.decompress(self.body) if self.get("content-encoding") == "gzip" else self.body

    @property
    def stays(self) -> bool:
        """Whether another request may follow on its connection."""
        wish = self.get("connection").lower()
        return wish == "keep-alive" if self.protocol == "HTTP/1.0" else wish != "close"


class Wire:
    """A connection.  Every method raises `Left` when the other end has gone."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._buffer = bytearray()
        self._poll = select.poll()
        self._poll.register(connection, select.POLLRDHUP)

    def read(self) -> Request:
        """Wait for a request and read it."""
        head = self._until(b"\r\n\r\n").decode("latin-1")
        first, *lines = head.split("\r\n")
        method, target, protocol = first.split(" ", 2)
        split = [line.partition(":") for line in lines]
        headers = tuple((name, value.strip()) for name, _, value in split)
        bare = Request(method=method, target=target, protocol=protocol, headers=headers, body=b"")
        return Request(
            method=method, target=target, protocol=protocol, headers=headers, body=self._body_of(bare)
        )

    def send(self, data: bytes) -> None:
        """Write all of this."""
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise Left from error

    def rest(self, seconds: float | None) -> None:
        """Wait so long, None = for ever; the end of the client's side ends it."""
        end = None if seconds is None else time.monotonic() + seconds
        while end is None or end > time.monotonic():
            left = None if end is None else 1000 * (end - time.monotonic())
            if self._poll.poll(left):
                raise Left
        self.look()

    def look(self) -> None:
        """Raise `Left` if the client has closed its side."""
        if self._poll.poll(0):
            raise Left

    def reset(self) -> None:
        """Close with a reset."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self._socket.close()

    def close(self) -> None:
        """Close in the ordinary way."""
        self._socket.close()

    def take(self, size: int) -> bytes:
        """Read so many bytes."""
        while len(self._buffer) < size:
            self._more()
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _body_of(self, request: Request) -> bytes:
        if request.get("expect").lower() == "100-continue":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" not in request.get("transfer-encoding").lower():
            return self.take(int(request.get("content-length") or "0"))
        body = bytearray()
        while size := int(self._until(b"\r\n").partition(b";")[0], 16):
            body += self.take(size)
            self.take(2)
        while self._until(b"\r\n"):
            pass
        return bytes(body)

    def _until(self, mark: bytes) -> bytes:
        seen = 0
        while (at := self._buffer.find(mark, seen)) < 0:
            seen = max(0, len(self._buffer) - len(mark))
            self._more()
        before = bytes(self._buffer[:at])
        del self._buffer[: at + len(mark)]
        return before

    def _more(self) -> None:
        try:
            piece = self._socket.recv(PIECE)
        except OSError as error:
            raise Left from error
        if not piece:
            raise Left
        self._buffer += piece
