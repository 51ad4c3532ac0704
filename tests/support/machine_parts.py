"""Who and what has to do with a daemon in memory: configurations, guests, connections to models' servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from support.processes_fakes import FakeChild
from support.web_talk import Talk, Upstream

MODELS = {
    "a": "proxy: 'http://127.0.0.1:9001', ttl: 4, sendLoadingState: true",
    "b": "proxy: 'http://127.0.0.1:9002', concurrencyLimit: 2, healthCheckTimeout: 15",
    "c": "proxy: 'http://127.0.0.1:9003', compat: {drainOnDisconnect: true}, unloadTimeout: 3",
}
PORTS = {9001: "a", 9002: "b", 9003: "c"}

Saying = Literal["whole", "begun", "ended", "nonsense", "dead"]


@dataclass(frozen=True, slots=True)
class Plan:
    """A configuration: which models in which version, under which scheduler, together or not."""

    models: dict[str, int]
    scheduler: str = "serial"
    together: bool = False
    preload: bool = False
    more: str = ""  # further lines

    @property
    def preloaded(self) -> set[str]:
        """What it loads by itself, unless the one before did so already."""
        return set(self.models) if self.preload else set()

    def text(self) -> str:
        """As it is written."""
        names = ", ".join(sorted(self.models))
        group = f"groups: {{side: {{swap: false, members: [{names}]}}}}\n" if self.together else ""
        hooks = f"hooks: {{on_startup: {{preload: [{names}]}}}}\n" if self.preload else ""
        return (
            f"{self.more}\nrouting: {{scheduler: {{use: {self.scheduler}}}}}\n"
            f"selectors: {{any: {{strategy: warm, targets: [{names}]}}}}\n{group}{hooks}models:\n"
        ) + "".join(
            f"  {name}: {{cmd: serve {name} v{version}, {MODELS[name]}}}\n"
            for name, version in self.models.items()
        )


@dataclass(eq=False, slots=True)
class Guest:
    """One request, and what its client has done about it."""

    talk: Talk
    chat: bool  # whether it is a job, and leaves a row
    whole: bool = True  # whether all of it was sent
    left: bool = False


@dataclass(eq=False, slots=True)
class Line:
    """A connection that the daemon has made to a model's server."""

    model: str
    server: Upstream

    @property
    def open(self) -> bool:
        """Whether neither side has closed it."""
        return not self.server.end.wire.lost and not self.server.end.is_aborted()

    @property
    def asked(self) -> bool:
        """Whether a request waits for the rest of its answer."""
        return self.open and bool(self.server.heard)

    @property
    def ending(self) -> bool:
        """Whether the daemon has cut it and is about to hear that it is gone."""
        return self.server.end.is_aborted() and not self.server.end.wire.lost


def model_of(child: FakeChild) -> str:
    """The model that a child serves."""
    return child.order.argv[1]


def faults_of(guest: Guest) -> Iterator[str]:
    """What is wrong with the answer of a client that has stayed: it is one, and it is whole or looks cut."""
    talk = guest.talk
    if not talk.raw.startswith(b"HTTP/1.1 "):
        yield "was never answered"
        return
    if talk.raw.count(b"HTTP/1.1 ") != 1:
        yield f"was answered more than once: {talk.raw!r}"
    whole = int(talk.headers.get("content-length", "-1")) == len(talk.body)
    if not (whole or talk.body.endswith(b"0\r\n\r\n") or talk.end.is_aborted()):
        yield f"has part of an answer that looks whole: {talk.raw!r}"
    if whole and talk.headers["content-type"] == "application/json":
        json.loads(talk.body)
