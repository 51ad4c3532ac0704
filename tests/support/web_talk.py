"""A daemon in memory, from outside: what a client gets, what a model's server is asked, how one comes up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from support.http1_wires import End, Upstreams
from support.processes_fakes import FakeChildren, FakeProber


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


class Box:
    """What is around a daemon in memory: clients, wires, and children that do as a test says."""

    reactor: Upstreams
    children: FakeChildren
    prober: FakeProber

    def chat(self, model: str = "a") -> Talk:
        """Ask a model to chat."""
        raise NotImplementedError

    def ready(self) -> None:
        """The children that are starting are healthy."""
        self.prober.answers(200)

    def goes(self) -> None:
        """Children that were asked to stop do so."""
        for child in self.children.alive:
            if child.signals:
                child.exits()

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
        return upstream
