"""A whole daemon in memory: real site, dispatcher and servers; children, wires and time as a test says.

daemon = WebDaemon(TWO_MODELS)
asked = daemon.post("/v1/chat/completions", {"model": "a"})
daemon.ready()
daemon.upstream().answers(b"{}")
assert asked.status == 200
"""

from __future__ import annotations

import base64
import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.error import ConnectionRefusedError as Refused
from twisted.internet.interfaces import (
    IAddress,
    IHostnameResolver,
    IHostResolution,
    IReactorPluggableNameResolver,
    IResolutionReceiver,
)
from typing_extensions import override
from zope.interface import implementer

from llamaswap.activity.backlog import Entry
from llamaswap.activity.journal import Journal, StoreFailed
from llamaswap.activity.query import ActivityQuery
from llamaswap.activity.record import Activity
from llamaswap.activity.store import ActivityStore
from llamaswap.config.load import load_text
from llamaswap.config.model import Config
from llamaswap.doubts import SETTLE
from llamaswap.engine import Engine
from llamaswap.generation import Generation
from llamaswap.http1.client import Pool
from llamaswap.http1.server import ServerFactory
from llamaswap.metering.captures import MIB, Captures
from llamaswap.preload import Preloads
from llamaswap.surroundings import DaemonReactor, Surroundings
from llamaswap.telemetry.hardware import Hardware
from llamaswap.telemetry.inflight import InFlight
from llamaswap.telemetry.loglines import Logbooks
from llamaswap.telemetry.resources import Resources
from llamaswap.telemetry.sampler import Sampler
from support.activity_rows import add_all
from support.http1_wires import TODAY, End, Upstreams
from support.processes_fakes import FakeChild, FakeChildren, FakeProber
from support.web_talk import Box, Talk, Upstream

NOON = 1_800_000_000.0  # unix seconds on the wall of every daemon here
CLIENT = "192.168.1.1"  # where clients in memory come from

TWO_MODELS = """
    routing: {scheduler: {use: serial}}
    models:
      a: {cmd: serve a, proxy: "http://127.0.0.1:9001", aliases: [alpha]}
      b: {cmd: serve b, proxy: "http://127.0.0.1:9002"}
"""


@implementer(IHostResolution)
class _Resolution:
    """Of a name that needed none."""

    def __init__(self, name: str) -> None:
        self.name = name

    def cancel(self) -> None:
        """It is over already."""


@implementer(IHostnameResolver)
class Literals:
    """A resolver for those who write addresses down."""

    def resolveHostName(
        self,
        resolutionReceiver: IResolutionReceiver,  # noqa: N803 - Twisted's
        hostName: str,  # noqa: N803 - Twisted's
        portNumber: int = 0,  # noqa: N803 - Twisted's
        addressTypes: Sequence[type[IAddress]] | None = None,  # noqa: N803 - Twisted's
        transportSemantics: str = "TCP",  # noqa: N803 - Twisted's
    ) -> _Resolution:
        """Say at once what was asked."""
        resolution = _Resolution(hostName)
        resolutionReceiver.resolutionBegan(resolution)
        resolutionReceiver.addressResolved(IPv4Address("TCP", hostName, portNumber))
        resolutionReceiver.resolutionComplete()
        return resolution


@implementer(IReactorPluggableNameResolver)
class BoxReactor(Upstreams):
    """A reactor in memory: time, wires, and names that are addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.nameResolver = Literals()


T = TypeVar("T")


class NotedRows(Journal):
    """A journal without a thread: rows are there at once."""

    def __init__(self, written: Callable[[int], None] = lambda _row_id: None) -> None:
        self.rows: list[Activity] = []
        self.trouble: Exception | None = None
        self.store = ActivityStore(None, 1000)
        self.told = written

    @override
    def start(self) -> None:
        """There is nothing to open."""

    @override
    def close(self) -> Deferred[None]:
        return succeed(None)

    @override
    def leave(self, entry: Entry) -> None:
        activity = entry.activity()
        self.rows.append(activity)
        (row_id,) = add_all(self.store, [activity])
        entry.stored(row_id)
        self.told(row_id)

    @override
    def page(self, query: ActivityQuery) -> Deferred[dict[str, Any]]:
        return fail(self.trouble) if self.trouble else succeed(self.store.page(query))

    @override
    def stats(self, model: str | None) -> Deferred[dict[str, Any]]:
        return fail(self.trouble) if self.trouble else succeed(self.store.stats(model))

    @override
    def look(self, question: Callable[[ActivityStore], T]) -> Deferred[T]:
        return fail(self.trouble) if self.trouble else succeed(question(self.store))

    @override
    def aside(self, work: Callable[[], T]) -> Deferred[T]:
        return succeed(work())

    def breaks(self) -> None:
        """The disk does not answer any more."""
        self.trouble = StoreFailed("disk I/O error")


class WebDaemon(Box):
    """One generation with everything around it faked.

    Args:
        config: YAML, may be indented; or a ready value.
        sampler: makes what watches the machine; without one, nobody does.
        changes: replace fields of the configuration.
    """

    reactor: BoxReactor

    def __init__(
        self,
        config: str | Config = TWO_MODELS,
        *,
        sampler: Callable[[BoxReactor], Sampler] | None = None,
        **changes: Any,
    ) -> None:
        loaded = load_text(textwrap.dedent(config), environ={}) if isinstance(config, str) else config
        self.config = replace(loaded, **changes)
        self.reactor = BoxReactor()
        self.children = FakeChildren()
        self.prober = FakeProber(self.reactor)
        self.books = Logbooks(self.config.log_to_stdout)
        self.journal = NotedRows()
        self.sampler = None if sampler is None else sampler(self.reactor)
        pool = Pool(self.reactor)
        self.engine = Engine(
            self.config,
            reactor=cast("DaemonReactor", self.reactor),
            children=self.children,
            prober=self.prober,
            pool=pool,
            books=self.books,
        )
        if self.sampler is not None:
            self.engine.metrics.watch(Resources(self.sampler.latest))
        self.generation = Generation(self.config, self.engine, pool, self._surroundings())
        self.engine.told = self.generation.state_changed
        self.engine.dispatcher.tell(self.generation.queue_changed)
        self.preloads = Preloads(self.engine.dispatcher, self.reactor)
        self.journal.told = self.generation.row_written
        self.factory = ServerFactory(self.generation.handle, self.reactor, today=lambda: TODAY)

    @property
    def rows(self) -> list[Activity]:
        """The activity so far, oldest first."""
        return self.journal.rows

    @property
    def child(self) -> FakeChild:
        """The child that was started last."""
        return self.children.latest

    @property
    def running(self) -> list[str]:
        """The last word of the command of each living child: in these tests, its model."""
        return [child.order.argv[-1] for child in self.children.alive]

    def connect(self) -> End:
        """One more client."""
        return End(self.factory.buildProtocol(None), self.reactor)

    def request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> Talk:
        """Send one request on a connection of its own."""
        fields = [("Host", "box.example"), *(headers.items() if isinstance(headers, Mapping) else headers)]
        if body is not None:
            fields += [("Content-Length", str(len(body)))]
            fields += [("Content-Type", content_type)] if content_type else []
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields)
        talk = Talk(self.connect())
        talk.end.send(head.encode("utf-8") + b"\r\n" + (body or b""))
        return talk

    def get(self, path: str, **headers: str) -> Talk:
        """Send a GET; `Accept_Encoding` names a header field."""
        return self.request("GET", path, headers=_fields(headers))

    def post(self, path: str, value: Any, **headers: str) -> Talk:
        """Send a POST with a JSON body."""
        return self.request("POST", path, headers=_fields(headers), body=json.dumps(value).encode())

    @override
    def chat(self, model: str = "a", **headers: str) -> Talk:
        """Ask a model to chat."""
        return self.post("/v1/chat/completions", {"model": model}, **headers)

    def refuses(self) -> None:
        """Nothing listens where a model's server should be, now and after a moment's doubt."""
        self.reactor.refuse(Refused())
        self.reactor.advance(SETTLE)
        self.reactor.refuse(Refused())

    def preload(self) -> None:
        """Begin with what the configuration wants at start."""
        self.preloads.begin(self.config.preload)

    def close(self) -> None:
        """Begin to stop: refuse who waits and who comes."""
        self.engine.dispatcher.close()
        self.generation.end_streams()

    def end(self, grace: float = 5.0) -> Deferred[None]:
        """Stop everything for good."""
        self.generation.end()
        self.preloads.end()
        return Deferred.fromCoroutine(self.engine.end(grace))

    @override
    def warm(self, model: str = "a") -> Upstream:
        """As for any box; it leaves no row."""
        upstream = super().warm(model)
        self.rows.clear()
        return upstream

    def metric(self, sample: str) -> float:
        """Return the value of one sample of `/metrics`, named with its labels."""
        for line in self.get("/metrics").body.decode().splitlines():
            if line.startswith(f"{sample} "):
                return float(line.rsplit(" ", 1)[1])
        raise AssertionError(f"no sample {sample}")

    def _surroundings(self) -> Surroundings:
        return Surroundings(
            reactor=cast("DaemonReactor", self.reactor),
            books=self.books,
            journal=self.journal,
            captures=Captures(self.config.capture_buffer * MIB),
            inflight=InFlight(self.reactor, wall=lambda: NOON),
            hardware=Hardware(dict, run=lambda _work: Deferred(), clock=self.reactor, wall=lambda: NOON),
            sampler=self.sampler,
            wall=lambda: NOON,
        )


def basic(user: str, password: str) -> str:
    """Return Basic credentials."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _fields(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
