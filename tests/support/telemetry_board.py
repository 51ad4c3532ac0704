"""A bulletin with its facts in a test's hands, and the messages of an event stream read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from twisted.internet.task import Clock

from llamaswap.http1.heads import RequestHead
from llamaswap.processes.logbook import Logbook
from llamaswap.scheduling.vocabulary import Band, BandView, QueueView, Ticket
from llamaswap.telemetry.bulletin import Board, Bulletin
from llamaswap.telemetry.inflight import Flight, InFlight

EMPTY = QueueView(bands={band: BandView(depth=0, oldest_wait=0.0) for band in Band}, jobs=())


def read_events(stream: bytes) -> list[tuple[str, Any]]:
    """Return type and decoded data of every message of a stream; it must be nothing but messages."""
    *messages, rest = stream.decode().split("\n\n")
    assert rest == ""
    prefix = "event:message\ndata:"
    assert all(message.startswith(prefix) for message in messages)
    bodies = [json.loads(message.removeprefix(prefix)) for message in messages]
    assert all(body.keys() == {"type", "data"} for body in bodies)
    return [(body["type"], json.loads(body["data"])) for body in bodies]


class Newsroom:
    """A bulletin, and what one may write about."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.proxy = Logbook()
        self.upstream = Logbook()
        self.inflight = InFlight(self.clock, lambda: 1_800_000_000.0)
        self.states = {"m1": "stopped"}
        self.profile: str | None = None
        self.queue = EMPTY
        board = Board(
            proxy=self.proxy,
            upstream=self.upstream,
            models=self._models,
            session_headers=("X-Session-ID",),
            profile=lambda: self.profile,
            inflight=self.inflight,
            queue=lambda: self.queue,
        )
        self.bulletin = Bulletin(board, self.clock)

    def _models(self, states: Mapping[str, str]) -> list[Mapping[str, Any]]:
        return [{"id": model, "state": state} for model, state in {**self.states, **states}.items()]

    def flight(self) -> Flight:
        """Let a request come in."""
        return self.inflight.enter(
            model="m1",
            req_path="/v1/completions",
            head=RequestHead(b"POST", b"/v1/completions", (1, 1), ()),
            client_host="127.0.0.1",
            arrived=self.clock.seconds(),
            cancel=lambda: None,
        )

    def waits(self, band: Band, oldest_wait: float) -> None:
        """Let one request wait while another of m1 runs."""
        bands = {**EMPTY.bands, band: BandView(depth=1, oldest_wait=oldest_wait)}
        job = Ticket(number=1, model="m1", priority=0, arrived=0.0)
        self.queue = QueueView(bands=bands, jobs=(job,))


class Listener:
    """Takes what a bulletin tells."""

    def __init__(self, bulletin: Bulletin) -> None:
        self._told: list[bytes] = []
        self.stop = bulletin.listen(self._told.append)

    def take(self, *kinds: str) -> list[tuple[str, Any]]:
        """Return the messages since the last time, only those of some types if any are named."""
        events = read_events(b"".join(self._told))
        self._told.clear()
        return [event for event in events if not kinds or event[0] in kinds]
