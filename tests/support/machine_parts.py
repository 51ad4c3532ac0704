"""Who and what has to do with a daemon in memory: configurations, guests, connections to models' servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from llamaswap.scheduling.vocabulary import Band
from support.processes_fakes import FakeChild
from support.web_talk import Talk, Upstream

MODELS = {
    "a": "proxy: 'http://127.0.0.1:9001', ttl: 4, sendLoadingState: true",
    "b": "proxy: 'http://127.0.0.1:9002', concurrencyLimit: 2, healthCheckTimeout: 15",
    "c": "proxy: 'http://127.0.0.1:9003', compat: {drainOnDisconnect: true}, unloadTimeout: 3",
}
LATE = 15.0
"""Seconds after which the first of them gives up a load."""
PORTS = {9001: "a", 9002: "b", 9003: "c"}

CALLERS = """
apiKeys: [key-of-op, key-of-low, key-of-high]
priorities:
  callers: [{name: low, keys: [key-of-low], maxPriority: batch}, {name: high, keys: [key-of-high], offset: 5}]
"""
"""Whose key is whose; everybody sends one, whether they are configured or not."""

Saying = Literal["whole", "begun", "ended", "nonsense", "dead"]


@dataclass(frozen=True, slots=True)
class Plan:
    """A configuration: which models in which version, under which scheduler, together or not."""

    models: dict[str, int]
    scheduler: str = "serial"
    together: bool = False
    families: tuple[str, ...] = ()  # the models of each may be loaded together, as a matrix says it
    preload: bool = False
    protected: frozenset[str] = frozenset()
    width: int = 1  # of every model
    budget: int = 0  # seconds of `swapBudgetSeconds`
    max_wait: int = 0  # seconds, of batch requests
    max_queue: int = 0  # of each band
    callers: bool = False  # whether keys have owners
    more: str = ""  # further lines

    @property
    def preloaded(self) -> set[str]:
        """What it loads by itself, unless the one before did so already."""
        return set(self.models) if self.preload else set()

    def allows(self, models: AbstractSet[str]) -> bool:
        """Whether these may run beside each other."""
        if self.families:
            return len(models) < 2 or any(models <= set(family) for family in self.families)
        return self.together or len(models) < 2

    def text(self) -> str:
        """As it is written."""
        names = ", ".join(sorted(self.models))
        group = f"groups: {{side: {{swap: false, members: [{names}]}}}}\n" if self.together else ""
        hooks = f"hooks: {{on_startup: {{preload: [{names}]}}}}\n" if self.preload else ""
        return (
            f"{self.more}\nrouting: {{scheduler: {{use: {self.scheduler}{self._serial()}}}}}\n"
            f"selectors: {{any: {{strategy: warm, targets: [{names}]}}}}\n"
            f"{self._matrix() or group}{CALLERS if self.callers else ''}{hooks}models:\n"
        ) + "".join(
            f"  {name}: {{cmd: serve {name} v{version}, {MODELS[name]}"
            f"{', protected: true' if name in self.protected else ''}}}\n"
            for name, version in self.models.items()
        )

    def _serial(self) -> str:
        found = []
        if self.width > 1:
            found.append(f"width: {{{', '.join(f'{name}: {self.width}' for name in self.models)}}}")
        if self.budget:
            found.append(f"swapBudgetSeconds: {self.budget}")
        if self.max_wait:
            found.append(f"maxWait: {{batch: {self.max_wait}}}")
        if self.max_queue:
            found.append(f"maxQueue: {{{', '.join(f'{band}: {self.max_queue}' for band in Band)}}}")
        return f", settings: {{serial: {{{', '.join(found)}}}}}" if found else ""

    def _matrix(self) -> str:
        known = ([name for name in family if name in self.models] for family in self.families)
        sets = " | ".join(" & ".join(names) for names in known if names)
        return f"matrix: {{sets: {{all: {sets}}}}}\n" if sets else ""


@dataclass(eq=False, slots=True)
class Guest:
    """One request, and what its client has done about it."""

    talk: Talk
    chat: bool  # whether it is a job, and leaves a row
    whole: bool = True  # whether all of it was sent
    left: bool = False
    caller: str = ""  # the name of the key's owner


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


def key_of(name: str = "op") -> str:
    """The header field that shows somebody's key; the operator's is nobody's in particular."""
    return f"X-Api-Key: key-of-{name}\r\n"


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
