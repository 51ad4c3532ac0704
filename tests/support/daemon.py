"""The whole service on a reactor in memory; only its store has a thread, and only where a test wants one."""

from __future__ import annotations

import json
import queue
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IReactorFromThreads
from twisted.internet.task import Clock
from typing_extensions import override
from zope.interface import implementer

from llamaswap.activity.record import Activity
from llamaswap.config.load import load_text
from llamaswap.config.model import Config, PerformanceConfig
from llamaswap.service import STOP_BUDGET, LlamaSwapService
from llamaswap.surroundings import DaemonReactor
from llamaswap.telemetry.hardware import Hardware
from llamaswap.telemetry.sampler import Sampler
from support.http1_wires import End
from support.processes_fakes import FakeChildren, FakeProber
from support.telemetry_machine import Machine
from support.web_daemon import NOON, TWO_MODELS, BoxReactor, NotedRows
from support.web_talk import Box, Talk

DEADLINE = 10.0  # real seconds that the store's thread may take


class Port:
    """A port that listens until it is told not to."""

    def __init__(self, number: int, factory: Any) -> None:
        self.number = number
        self.factory = factory
        self.open = True

    def getHost(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.number}"

    def stopListening(self) -> None:
        """Take no more connections."""
        self.open = False


@implementer(IReactorFromThreads)
class ServiceReactor(BoxReactor):
    """A reactor in memory on which some ports are taken, and which hears from threads when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: set[int] = set()
        self.ports: list[Port] = []
        self._heard: queue.Queue[Callable[[], object]] = queue.Queue()

    @override
    def listenTCP(self, port: int, factory: Any, backlog: int = 50, interface: str = "") -> Port:
        """Listen, unless somebody else does."""
        if port in self.taken:
            raise CannotListenError(interface, port, OSError(98, "Address already in use"))
        self.ports.append(Port(port, factory))
        return self.ports[-1]

    def callFromThread(self, callable: Callable[..., Any], *args: object, **kwargs: object) -> None:  # noqa: A002 - Twisted's
        """Keep it for `listen_until`."""
        self._heard.put(lambda: callable(*args, **kwargs))

    def listen_until(self, happened: Callable[[], object]) -> None:
        """Run what is due and what threads sent until `happened()`."""
        self.advance(0)
        while not happened():
            self._heard.get(timeout=DEADLINE)()
            self.advance(0)


class ServiceRig(Box):
    """One service, and what it did to the world.

    Args:
        patch: puts fake children in the place of real ones.
        machine: what is watched; without one, whatever the configuration says, nothing is.
        threads: whether the store has its thread; without it, rows are there at once and in `rows`.
    """

    reactor: ServiceReactor

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        config: str = TWO_MODELS,
        *,
        listen: tuple[str, ...] = ("tcp:8080",),
        environ: Mapping[str, str] | None = None,
        threads: bool = True,
        machine: Machine | None = None,
    ) -> None:
        self.reactor = ServiceReactor()
        self.children = FakeChildren()
        self.prober = FakeProber(self.reactor)
        patch.setattr("llamaswap.service.make_children", lambda _reactor, _environ: self.children)
        patch.setattr("llamaswap.service.make_prober", lambda _reactor: self.prober)
        patch.setattr("llamaswap.service.make_hardware", self._no_hardware)
        self.machine = machine
        patch.setattr("llamaswap.service.make_sampler", self._make_sampler)
        self.journals: list[NotedRows] = []
        if not threads:
            patch.setattr("llamaswap.service.Journal", self._make_journal)
        self.service = LlamaSwapService(
            self._read(config),
            listen,
            reactor=cast("DaemonReactor", self.reactor),
            environ=environ or {},
            wall=lambda: NOON,
        )
        self.stopped: Deferred[None] | None = None

    def _no_hardware(self, reactor: object, wall: Callable[[], float]) -> Hardware:
        return Hardware(dict, run=lambda _work: succeed({}), clock=self.reactor, wall=wall)

    def _make_journal(
        self, _open_store: object, _reactor: object, written: Callable[[int], None] = lambda _row: None
    ) -> NotedRows:
        self.journals.append(NotedRows(written))
        return self.journals[-1]

    def _make_sampler(self, clock: Clock, wall: Callable[[], float], every: float) -> Sampler:
        assert self.machine is not None
        return self.machine.sampler(clock, wall, every)

    def _read(self, config: str, ports: Mapping[str, int] | None = None) -> Config:
        loaded = load_text(textwrap.dedent(config), environ={}, ports=ports or {})
        unwatched = PerformanceConfig(disabled=True)
        return loaded if self.machine is not None else replace(loaded, performance=unwatched)

    @property
    def rows(self) -> list[Activity]:
        """The activity so far, oldest first; of a service without threads."""
        return [row for journal in self.journals for row in journal.rows]

    @property
    def running(self) -> list[str]:
        """The command of each living child, without its first word."""
        return [" ".join(child.order.argv[1:]) for child in self.children.alive]

    def start(self) -> None:
        """Start it."""
        self.service.startService()

    def reload(self, config: str) -> None:
        """Let it go on under another configuration."""
        self.service.reload(self._read(config, self.service.ports))

    def stop(self) -> Deferred[None]:
        """Begin to stop it."""
        self.stopped = self.service.stopService()
        return self.stopped

    def finish_stopping(self) -> None:
        """Wait for the store's thread, the last thing that a stop waits for."""
        stopped = self.stopped if self.stopped is not None else self.stop()
        while self.children.alive:
            self.children.alive[0].exits()
        if self.service.engine.view().jobs:
            self.reactor.advance(STOP_BUDGET)  # nobody answers them any more
        self.reactor.listen_until(lambda: stopped.called)

    def ask(self, head: str, more: str = "") -> Talk:
        """Send a request without a body, such as `GET /health`; `more` is header fields."""
        return self.send(f"{head} HTTP/1.1\r\nHost: h\r\n{more}\r\n".encode())

    @override
    def chat(self, model: str = "a", **more: Any) -> Talk:
        """Ask a model to chat; `more` goes into the body."""
        return self.post("/v1/chat/completions", {"model": model, **more})

    def post(self, path: str, value: Any, *, more: str = "") -> Talk:
        """Send a POST with a JSON body; `more` is header fields, each with its line's end."""
        body = json.dumps(value)
        head = f"POST {path} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n{more}"
        return self.send(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())

    def send(self, request: bytes) -> Talk:
        """Send a request over a connection to the first port."""
        talk = Talk(End(self.reactor.ports[0].factory.buildProtocol(None), self.reactor))
        talk.end.send(request)
        return talk


def write_config(folder: Path, text: str, name: str = "config.yaml") -> Path:
    """Write a configuration file."""
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path
