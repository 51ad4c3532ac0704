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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.interfaces import (
    IAddress,
    IHostnameResolver,
    IHostResolution,
    IReactorPluggableNameResolver,
    IResolutionReceiver,
)
from typing_extensions import override
from zope.interface import implementer

from llamaswap.activity.journal import Journal, StoreFailed
from llamaswap.activity.query import ActivityQuery
from llamaswap.activity.record import Activity
from llamaswap.activity.store import ActivityStore
from llamaswap.config.load import load_text
from llamaswap.config.model import Config
from llamaswap.generation import DaemonReactor, Generation, Surroundings
from llamaswap.http1.client import Pool
from llamaswap.http1.server import ServerFactory
from llamaswap.telemetry.loglines import Logbooks
from support.http1_wires import TODAY, End, Upstreams
from support.processes_fakes import FakeChild, FakeChildren, FakeProber

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


class NotedRows(Journal):
    """A journal without a thread: rows are there at once."""

    def __init__(self) -> None:
        self.rows: list[Activity] = []
        self.trouble: Exception | None = None
        self.store = ActivityStore(None, 1000)

    @override
    def write(self, activity: Activity) -> None:
        self.rows.append(activity)
        self.store.add_all([activity])

    @override
    def page(self, query: ActivityQuery) -> Deferred[dict[str, Any]]:
        return fail(self.trouble) if self.trouble else succeed(self.store.page(query))

    @override
    def stats(self, model: str | None) -> Deferred[dict[str, Any]]:
        return fail(self.trouble) if self.trouble else succeed(self.store.stats(model))

    def breaks(self) -> None:
        """The disk does not answer any more."""
        self.trouble = StoreFailed("disk I/O error")


class Talk:
    """One request of a client, and what it got."""

    def __init__(self, end: End) -> None:
        self.end = end
        self._seen = b""

    @property
    def raw(self) -> bytes:
        """Everything that came."""
        self._seen += self.end.take()
        return self._seen

    @property
    def waits(self) -> bool:
        """Whether nothing has come yet."""
        return not self.raw

    @property
    def status(self) -> int:
        """The status of the answer."""
        assert self.raw, "no answer yet"
        return int(self.raw.split(b" ", 2)[1])

    @property
    def headers(self) -> Mapping[str, str]:
        """The header fields by lower-case name; of a repeated one, the last."""
        lines = self.raw.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]
        pairs = (line.partition(": ") for line in lines)
        return {name.lower(): value for name, _, value in pairs}

    @property
    def body(self) -> bytes:
        """What came behind the head, as it came."""
        return self.raw.partition(b"\r\n\r\n")[2]

    @property
    def pieces(self) -> list[bytes]:
        """The chunks of a chunked body; the last is empty when it is complete."""
        found, rest = [], self.body
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            found.append(rest[: int(size, 16)])
            rest = rest[int(size, 16) + 2 :]
        return found

    @property
    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)

    @property
    def message(self) -> str:
        """The message of an error envelope."""
        return str(self.json["error"]["message"])

    def leaves(self) -> None:
        """The client closes its connection."""
        self.end.leave()


class Upstream:
    """A model's server, as the connection that was opened to it."""

    def __init__(self, end: End) -> None:
        self.end = end
        self.begun = False  # for tests that answer bit by bit
        self._heard = b""

    @property
    def heard(self) -> bytes:
        """What it was sent."""
        self._heard += self.end.take()
        return self._heard

    @property
    def line(self) -> str:
        """The request line, without the version."""
        return self.heard.split(b" HTTP/1.1\r\n")[0].decode("latin-1")

    @property
    def fields(self) -> list[tuple[str, str]]:
        """The header fields, in order."""
        lines = self.heard.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]
        return [(name, value) for name, _, value in (line.partition(": ") for line in lines)]

    @property
    def body(self) -> bytes:
        """What came behind the head, as it came."""
        return self.heard.partition(b"\r\n\r\n")[2]

    def answers(
        self, body: bytes = b"{}", status: str = "200 OK", *, kind: str = "application/json", more: str = ""
    ) -> None:
        """Send a whole answer."""
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
        self.forget()
        self.end.send(head.encode("latin-1") + body)

    def forget(self) -> None:
        """Make room for the next request on this connection."""
        self._heard = b""
        self.end.take()

    def begins(self, *chunks: bytes, kind: str = "text/event-stream") -> None:
        """Send a head and some chunks of an answer without an end."""
        self.end.send(
            f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        self.goes_on(*chunks)

    def goes_on(self, *chunks: bytes) -> None:
        """Send more chunks; an empty one ends the answer."""
        for chunk in chunks:
            self.end.send(b"%x\r\n%b\r\n" % (len(chunk), chunk))

    def dies(self) -> None:
        """Its connection is reset."""
        self.end.reset()


class WebDaemon:
    """One generation with everything around it faked.

    Args:
        config: YAML, may be indented; or a ready value.
        changes: replace fields of the configuration.
    """

    def __init__(self, config: str | Config = TWO_MODELS, **changes: Any) -> None:
        loaded = load_text(textwrap.dedent(config), environ={}) if isinstance(config, str) else config
        self.config = replace(loaded, **changes)
        self.reactor = BoxReactor()
        self.children = FakeChildren()
        self.prober = FakeProber(self.reactor)
        self.books = Logbooks(self.config.log_to_stdout)
        self.journal = NotedRows()
        self.generation = Generation(
            self.config,
            Surroundings(
                reactor=cast("DaemonReactor", self.reactor),
                children=self.children,
                prober=self.prober,
                pool=Pool(self.reactor),
                books=self.books,
                journal=self.journal,
                wall=lambda: NOON,
            ),
        )
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

    def chat(self, model: str = "a", **headers: str) -> Talk:
        """Ask a model to chat."""
        return self.post("/v1/chat/completions", {"model": model}, **headers)

    def ready(self) -> None:
        """The child that is starting is healthy."""
        self.prober.answers(200)

    def goes(self) -> None:
        """Children that were asked to stop do so."""
        for child in self.children.alive:
            if child.signals:
                child.exits()

    def end(self, grace: float = 5.0) -> Deferred[None]:
        """Stop everything for good."""
        return Deferred.fromCoroutine(self.generation.end(grace))

    def upstream(self) -> Upstream:
        """Accept the connection that the daemon asks its model's server for."""
        return Upstream(self.reactor.accept())

    def warm(self, model: str = "a") -> Upstream:
        """Have a model answer once; returns the connection, which is kept for the next request."""
        asked = self.chat(model)
        self.goes()
        self.ready()
        upstream = self.upstream()
        upstream.answers()
        assert asked.status == 200
        self.rows.clear()
        return upstream

    def metric(self, sample: str) -> float:
        """Return the value of one sample of `/metrics`, named with its labels."""
        for line in self.get("/metrics").body.decode().splitlines():
            if line.startswith(f"{sample} "):
                return float(line.rsplit(" ", 1)[1])
        raise AssertionError(f"no sample {sample}")


def basic(user: str, password: str) -> str:
    """Return Basic credentials."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _fields(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
