"""One request over one connection: written as the step says, read until the step has enough."""

from __future__ import annotations

import base64
import re
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from conformance.player.answers import Answer, parse

CONNECT = 5.0
"""Seconds for the connection."""

PIECE = 65536


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request as bytes."""

    data: bytes
    method: str


def render(send: Mapping[str, Any], host: str) -> Outgoing:
    """The bytes of a step's request, with Host, Connection and Content-Length where they are missing."""
    if "raw" in send:
        raw = send["raw"].encode("latin-1")
        return Outgoing(raw, "HEAD" if raw.startswith(b"HEAD") else "GET")
    body = _body(send)
    fields = [*(send.get("headers") or {}).items(), *map(tuple, send.get("more_headers", []))]
    named = {name.lower() for name, _ in fields}
    if "host" not in named:
        fields.insert(0, ("Host", host))
    if "connection" not in named:
        fields.append(("Connection", "close"))
    has_body = body or send["method"] in {"POST", "PUT"}
    if has_body and not named & {"content-length", "transfer-encoding"}:
        fields.append(("Content-Length", str(len(body))))
    lines = [f"{send['method']} {send['path']} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
    return Outgoing("".join(f"{line}\r\n" for line in (*lines, "")).encode() + body, send["method"])


def talk(port: int, step: Mapping[str, Any], limit: float) -> Answer:
    """Send a step's request and read the answer.

    Args:
        port: of the server.
        step: with its placeholders filled in.
        limit: seconds, unless the step has its own.

    Raises:
        OSError: no connection.
        NotHttp: what came is no answer.
    """
    started = time.monotonic()
    request = render(step["send"], f"127.0.0.1:{port}")
    stop = started + (step["read_ms"] / 1000 if "read_ms" in step else limit)
    with socket.create_connection(("127.0.0.1", port), CONNECT) as wire:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        received, hung_up = _Exchange(wire, request, step, stop).run()
    return replace(_answer(received, request, step, hung_up), took=time.monotonic() - started)


class _Exchange:
    """What goes over one connection."""

    def __init__(self, wire: socket.socket, request: Outgoing, step: Mapping[str, Any], stop: float) -> None:
        self._wire = wire
        self._request = request
        self._stop = stop
        self._raw = step.get("raw_answer", False)
        self._until = re.compile(step["until"].encode(), re.DOTALL) if "until" in step else None
        self._more = [
            (re.compile(more["after"].encode("latin-1"), re.DOTALL), more["send"].encode("latin-1"))
            for more in step.get("then", [])
        ]
        self._received = b""

    def run(self) -> tuple[bytes, bool]:
        """What was received, and whether it was us who hung up while more could have come."""
        self._wire.sendall(self._request.data)
        while (left := self._stop - time.monotonic()) > 0:
            self._wire.settimeout(left)
            try:
                piece = self._wire.recv(PIECE)
            except TimeoutError:
                break
            except OSError:
                return self._received, False
            if not piece:
                return self._received, False
            self._received += piece
            self._go_on()
            if self._until and self._until.search(self._received):
                break
            if self._is_complete():
                return self._received, False
        return self._received, True

    def _go_on(self) -> None:
        while self._more and self._more[0][0].search(self._received):
            self._wire.sendall(self._more.pop(0)[1])

    def _is_complete(self) -> bool:
        if self._raw or self._more:
            return False
        answer = parse(self._received, self._request.method, closed=False)
        return answer is not None and answer.end == "clean"


def _answer(received: bytes, request: Outgoing, step: Mapping[str, Any], hung_up: bool) -> Answer:
    nothing = Answer(body=received, raw=received, end="open" if hung_up else "closed")
    if step.get("raw_answer"):
        return nothing
    answer = parse(received, request.method, closed=not hung_up)
    if answer is None:
        return nothing
    return replace(answer, end="open") if hung_up and answer.end != "clean" else answer


def _body(send: Mapping[str, Any]) -> bytes:
    if "body_b64" in send:
        return base64.b64decode(send["body_b64"])
    if "body_fill" in send:
        before, unit, count, after = send["body_fill"]
        return f"{before}{unit * count}{after}".encode()
    return str(send.get("body", "")).encode()
