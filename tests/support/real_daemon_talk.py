"""Talk to a daemon over loopback: whole exchanges, and raw bytes."""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPMessage
from typing import Any, Self

PATIENCE = 60.0  # seconds that an answer may take on a busy machine


@dataclass(frozen=True, slots=True)
class Answer:
    """One whole answer."""

    status: int
    headers: HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The message of an error envelope."""
        message: str = self.json["error"]["message"]
        return message


def ask(
    port: int,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """One exchange over a connection of its own."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path, body, dict(headers or {}))
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()


def json_fields(
    priority: str | None = None, stub: Mapping[str, Any] | None = None, tag: str = ""
) -> dict[str, str]:
    """The header fields of a JSON request."""
    fields = {"Content-Type": "application/json"}
    if priority is not None:
        fields["X-LlamaSwap-Priority"] = priority
    if stub is not None:
        fields["X-Stub"] = json.dumps(stub)
    if tag:
        fields["X-Tag"] = tag
    return fields


def chat_body(model: str, **more: Any) -> bytes:
    """The body of a chat completion."""
    return json.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}], **more}).encode()


def request_bytes(
    method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> bytes:
    """A request as it goes over the wire."""
    fields = {"Host": "llamaswap", **(headers or {})}
    if body:
        fields["Content-Length"] = str(len(body))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode() + body


class Wire:
    """A raw connection; every wait has a deadline."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send all of this."""
        self._socket.sendall(data)

    def read_until(self, wanted: bytes) -> bytes:
        """Read until this has come; returns what came up to there and keeps the rest."""
        while wanted not in self.received:
            data = self._socket.recv(1 << 16)
            assert data, f"the connection ended before {wanted!r} came, after {self.received[-300:]!r}"
            self.received += data
        before, _, self.received = self.received.partition(wanted)
        return before + wanted

    def read_exactly(self, size: int) -> bytes:
        """Read so many bytes."""
        while len(self.received) < size:
            data = self._socket.recv(1 << 16)
            assert data, f"the connection ended after {len(self.received)} of {size} bytes"
            self.received += data
        found, self.received = self.received[:size], self.received[size:]
        return found

    def read_to_end(self) -> bytes:
        """Read until the other end closes; ConnectionResetError if it aborts."""
        while data := self._socket.recv(1 << 16):
            self.received += data
        return self.received

    def ends_within(self, patience: float, wanted: bytes) -> bool:
        """Read for so many seconds; returns whether this has come by then."""
        end = time.monotonic() + patience
        while wanted not in self.received:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._socket], [], [], left)[0]:
                return False
            data = self._socket.recv(1 << 16)
            assert data, "the daemon closed the connection"
            self.received += data
        return True

    def abort(self) -> float:
        """Leave with a reset; returns the moment, on the monotonic clock."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()
        return time.monotonic()

    def close(self) -> float:
        """Leave in the ordinary way; returns the moment, on the monotonic clock."""
        self._socket.close()
        return time.monotonic()


def until(holds: Callable[[], object], what: str, deadline: float = 20.0) -> None:
    """Wait until something holds; a failure of the test if it does not within `deadline` seconds."""
    end = time.monotonic() + deadline
    while not holds():
        assert time.monotonic() < end, f"in vain waited {deadline} s for {what}"
        time.sleep(0.005)
