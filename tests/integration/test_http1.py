"""The data path over real sockets on loopback."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.error import ConnectionDone
from twisted.internet.protocol import Factory
from twisted.internet.task import Clock, deferLater
from twisted.internet.tcp import Port

from llamaswap.http1.client import Pool, UpstreamFailed
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.heads import end_to_end
from llamaswap.http1.relay import Ended, Outcome, relay
from llamaswap.http1.server import ServerFactory
from support.http1_sockets import DEADLINE, Talk, finish, on_sockets, reactor, until
from support.http1_wires import format_request

pytestmark = pytest.mark.integration

GET = b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n"


class Rig:
    """A relaying server, the upstream it relays to, and their clients."""

    def __init__(self) -> None:
        self.upstreams: list[Talk] = []
        self.arrived: list[Deferred[Talk]] = []
        self.outcomes: list[Outcome] = []
        self.finished: Deferred[None] = Deferred()
        self.pool = Pool(reactor())
        self.server = ServerFactory(self._handle, reactor())
        self._upstream_port, port = self._listen(Factory.forProtocol(self._upstream))
        self.upstream = ("127.0.0.1", port)
        self._server_port, self.port = self._listen(self.server)
        self._clients: list[Talk] = []

    def _listen(self, factory: Factory) -> tuple[Port, int]:
        port = reactor().listenTCP(0, factory, interface="127.0.0.1")
        return port, port.getHost().port

    def _upstream(self) -> Talk:
        talk = Talk()
        self.upstreams.append(talk)
        return talk

    async def _handle(self, exchange: Exchange) -> None:
        body = await exchange.body()
        head = exchange.head
        fields = [*end_to_end(head.headers), (b"Content-Length", b"%d" % body.size)]
        request = [format_request(head.method, head.target, dict(fields).items()), *body.wire]
        try:
            outcome = await relay(exchange, self.pool, *self.upstream, request, method=head.method)
        except UpstreamFailed as error:
            exchange.respond(502, error.reason.encode())
        else:
            self.outcomes.append(outcome)
            self.finished.callback(None)

    async def client(self) -> Talk:
        """One more client."""
        from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol

        talk = Talk()
        self._clients.append(talk)
        await connectProtocol(TCP4ClientEndpoint(reactor(), "127.0.0.1", self.port), talk)
        return talk

    async def asked(self, client: Talk, request: bytes = GET) -> Talk:
        """Send a request; returns the upstream once it has arrived there."""
        client.transport.write(request)
        while not self.upstreams:
            await deferLater(reactor(), 0.001)
        upstream = self.upstreams[-1]
        await until(lambda: b"\r\n\r\n" in upstream.received, upstream)
        return upstream

    async def stop_upstream(self) -> None:
        """Let connections to it be refused."""
        await maybeDeferred(self._upstream_port.stopListening)

    async def stop(self) -> None:
        """Leave nothing behind."""
        for port in (self._server_port, self._upstream_port):
            await maybeDeferred(port.stopListening)
        self.pool.close()
        for talk in (*self._clients, *self.upstreams):
            talk.transport.abortConnection()
        self.server.abort_all()
        for talk in (*self._clients, *self.upstreams):
            await until(partial(_lost, talk), talk)
        while self.server.connections:
            await deferLater(reactor(), 0.001)


def _lost(talk: Talk) -> bool:
    return talk.lost_at is not None


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    finish(rig.stop())


@on_sockets
async def test_a_stream_crosses_piece_by_piece(rig: Rig) -> None:
    client = await rig.client()
    upstream = await rig.asked(client)
    upstream.transport.write(b"HTTP/1.1 200 OK\r\nDate: d\r\nTransfer-Encoding: chunked\r\n\r\n")

    for n in range(20):
        piece = b"7;n=%d\r\ndata: %d\r\n" % (n % 10, n % 10)
        upstream.transport.write(piece)
        await until(partial(client.received.endswith, piece), client)
    upstream.transport.write(b"0\r\nT: u\r\n\r\n")
    await until(lambda: client.received.endswith(b"0\r\nT: u\r\n\r\n"), client)

    assert rig.outcomes[0].ended is Ended.COMPLETE


@on_sockets
async def test_large_bodies_cross_both_ways_unharmed(rig: Rig) -> None:
    size = 20_000_000
    body = bytes(range(250)) * (size // 250)
    client = await rig.client()
    upstream = await rig.asked(
        client, b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % size + body
    )
    await until(lambda: len(upstream.received) > size, upstream)
    assert upstream.received.endswith(b"\r\n\r\n" + body)

    upstream.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + body)
    await until(lambda: len(client.received) > size, client)

    assert client.received.endswith(b"\r\n\r\n" + body)
    assert rig.outcomes[0].body_bytes == size


@on_sockets
async def test_a_client_that_leaves_closes_the_upstream_within_milliseconds(rig: Rig) -> None:
    client = await rig.client()
    upstream = await rig.asked(client)
    upstream.transport.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    await until(lambda: client.received, client)

    left_at = reactor().seconds()
    client.transport.abortConnection()
    await until(lambda: upstream.lost_at is not None, upstream)

    assert upstream.lost_at is not None
    assert upstream.lost_at - left_at < 0.05
    assert rig.outcomes[0].ended is Ended.CLIENT_LEFT


@on_sockets
async def test_an_upstream_that_dies_resets_the_client(rig: Rig) -> None:
    client = await rig.client()
    upstream = await rig.asked(client)
    upstream.transport.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
    await until(lambda: client.received.endswith(b"hello\r\n"), client)

    upstream.transport.loseConnection()
    await until(lambda: client.lost_at is not None, client)

    assert client.lost_how is not ConnectionDone
    assert rig.outcomes[0].ended is Ended.UPSTREAM_DIED


@on_sockets
async def test_a_client_that_does_not_read_does_not_hold_the_upstream(rig: Rig) -> None:
    size = 7_000_000
    client = await rig.client()
    upstream = await rig.asked(client)
    cast("Any", client.transport).pauseProducing()

    upstream.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + bytes(size))
    rig.finished.addTimeout(DEADLINE, reactor())
    await rig.finished
    assert len(client.received) < size

    cast("Any", client.transport).resumeProducing()
    await until(lambda: len(client.received) > size, client)


@on_sockets
async def test_a_client_that_takes_its_answer_slowly_gets_it_and_one_that_stops_is_cut() -> None:
    """The kernel has room again only when a third of what it held is gone: much later than an idle limit."""
    clock = Clock()

    async def answer(exchange: Exchange) -> None:
        exchange.respond(200, bytes(8_000_000))

    server = ServerFactory(answer, clock)
    port = reactor().listenTCP(0, server, interface="127.0.0.1")
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.settimeout(DEADLINE)
        client.connect(("127.0.0.1", port.getHost().port))
        client.sendall(GET)
        while not select.select([client], [], [], 0)[0]:
            await deferLater(reactor(), 0.001)

        for _ in range(3):
            left = 300_000  # more than its kernel holds, so that some of it is acknowledged
            while left > 0:
                left -= len(client.recv(left))
            clock.advance(server.limits.idle_seconds + 1)
            await deferLater(reactor(), 0)
            assert server.connections == 1

        clock.advance(server.limits.idle_seconds + 1)
        while server.connections:
            await deferLater(reactor(), 0.001)
    await maybeDeferred(port.stopListening)


@on_sockets
async def test_a_host_name_is_looked_up(rig: Rig) -> None:
    rig.upstream = ("localhost", rig.upstream[1])
    client = await rig.client()

    upstream = await rig.asked(client)
    upstream.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    await until(lambda: client.received.endswith(b"ok"), client)


@on_sockets
async def test_a_refused_connection_is_a_502(rig: Rig) -> None:
    await rig.stop_upstream()
    client = await rig.client()

    client.transport.write(GET)
    await until(lambda: b"refused" in client.received, client)

    assert client.received.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")


@on_sockets
async def test_a_refused_client_that_goes_on_sending_still_hears_why(rig: Rig) -> None:
    client = await rig.client()

    client.transport.write(b"GET / HTTP/1.1\r\nX: " + b"a" * 1_000_000)
    await until(lambda: client.lost_at is not None, client)

    assert client.received.startswith(b"HTTP/1.1 431 ")
    assert client.lost_how is ConnectionDone


@on_sockets
async def test_small_writes_are_not_held_back_and_dead_peers_are_noticed(rig: Rig) -> None:
    await rig.asked(await rig.client())
    (connection,) = rig.server._open

    handle = connection.transport.getHandle()  # type: ignore[attr-defined]  # ISystemHandle
    assert handle.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert handle.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
