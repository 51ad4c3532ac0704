"""Read `/api/events` as a browser's EventSource would, in a thread of its own.

Follows the parsing rules of the HTML standard for event streams; knows of
llama-swap only that each message's data is a JSON object whose own `data` is
JSON again.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse, IncompleteRead
from typing import Any, Self

from support.real_daemon_talk import PATIENCE, until


@dataclass(frozen=True, slots=True)
class Event:
    """One message, decoded."""

    type: str
    data: Any
    at: float  # seconds on the monotonic clock


def server_sent(lines: Iterator[bytes]) -> Iterator[tuple[str, str]]:
    """Turn the lines of a stream, ends included, into events: their names and their data."""
    name, data = "", list[str]()
    for raw in lines:
        line = raw.decode().rstrip("\r\n")
        if not line:
            if data:
                yield name or "message", "\n".join(data)
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)


class EventSource:
    """What a daemon tells whoever listens."""

    def __init__(
        self, port: int, path: str = "/api/events", headers: Mapping[str, str] | None = None
    ) -> None:
        self.events: list[Event] = []
        self.ended = threading.Event()
        self.why = ""  # it ended; '' = as it should
        self._connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self._connection.request("GET", path, headers=dict(headers or {}))
        self.response: HTTPResponse = self._connection.getresponse()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> None:
        try:
            for name, text in server_sent(iter(self.response.readline, b"")):
                told = json.loads(text)
                assert name == "message"
                self.events.append(Event(told["type"], json.loads(told["data"]), time.monotonic()))
        except (OSError, ValueError, AttributeError, IncompleteRead) as error:
            self.why = repr(error)  # closed by the other end, or by us under our own feet
        self.ended.set()

    def of(self, kind: str) -> list[Any]:
        """The data of every message of one type so far."""
        return [event.data for event in tuple(self.events) if event.type == kind]

    def wait(self, kind: str, holds: Callable[[Any], object], what: str = "") -> Any:
        """Wait until a message of this type holds; returns its data."""

        def found() -> list[Any]:
            return [data for data in self.of(kind) if holds(data)]

        until(found, what or f"a {kind} event, among {self.events[-5:]}")
        return found()[0]

    def states(self, model: str) -> list[str]:
        """The states that one model was said to be in, repetitions left out."""
        said = [row["state"] for rows in self.of("modelStatus") for row in rows if row["id"] == model]
        return [state for number, state in enumerate(said) if number == 0 or said[number - 1] != state]

    def close(self) -> None:
        """Leave."""
        # Nothing may be closed that the thread still waits for: the end of the connection wakes it.
        with suppress(OSError):
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE)
        self.response.close()
        self._connection.close()
