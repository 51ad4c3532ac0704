"""TLS on a real socket: the server's certificate is checked, and the data path works behind it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.endpoints import (
    HostnameEndpoint,
    connectProtocol,
    serverFromString,
    wrapClientTLS,
)
from twisted.internet.interfaces import IListeningPort, INegotiated
from twisted.internet.ssl import Certificate, optionsForClientTLS
from twisted.internet.task import deferLater

from llamaswap.config.model import ModelConfig
from llamaswap.http1.client import Pool
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.relay import Ended, Outcome
from llamaswap.http1.securing import Security
from llamaswap.http1.server import Handler, Limits, ServerFactory
from llamaswap.processes.health import parse_proxy
from llamaswap.proxying.local import LocalUpstream
from llamaswap.tls import Pair, read_pair, with_tls
from support.http1_sockets import DEADLINE, Talk, on_sockets, reactor, until
from support.tls_certificates import Issued, issue, pem_of_key

pytestmark = [
    pytest.mark.integration,
    # What Twisted hands to pyOpenSSL is Twisted's own affair.
    pytest.mark.filterwarnings("ignore:Passing pyOpenSSL:DeprecationWarning"),
]

GET = b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"
BIG = 3_000_000


async def answer(exchange: Exchange) -> None:
    """Answers with a body that no socket takes at once, or echoes."""
    body = await exchange.body()
    exchange.respond(200, body.decoded or b"a" * BIG, headers=[(b"X-Peer", exchange.client_host.encode())])


async def listen(
    pair: Pair, limits: Limits | None = None, handler: Handler = answer
) -> tuple[IListeningPort, ServerFactory]:
    factory = ServerFactory(handler, reactor(), limits=limits)
    endpoint = serverFromString(reactor(), with_tls("tcp:0:interface=127.0.0.1", pair))
    return cast("IListeningPort", await endpoint.listen(factory)), factory


async def connect(port: IListeningPort, trusted: bytes, *, offers: tuple[bytes, ...] = ()) -> Talk:
    """A client that believes in one authority, expects `localhost` and may offer protocols (ALPN)."""
    options = optionsForClientTLS(
        "localhost", trustRoot=Certificate.loadPEM(trusted), acceptableProtocols=offers or None
    )
    plain = HostnameEndpoint(
        reactor(), "127.0.0.1", cast("IPv4Address", port.getHost()).port, timeout=DEADLINE
    )
    talk = Talk()
    await connectProtocol(wrapClientTLS(options, plain), talk)
    return talk


def written(folder: Path, issued: Issued) -> Pair:
    """The files of a certificate and its key."""
    (folder / "cert.pem").write_bytes(issued.pem)
    (folder / "key.pem").write_bytes(pem_of_key(issued.key))
    return read_pair(Pair(str(folder / "cert.pem"), str(folder / "key.pem")))


async def once(condition: Callable[[], bool], otherwise: str) -> None:
    """Wait for what no client hears of."""
    end = reactor().seconds() + DEADLINE
    while not condition():
        assert reactor().seconds() < end, otherwise
        await deferLater(reactor(), 0.02)


async def close(port: IListeningPort, factory: ServerFactory, talk: Talk) -> None:
    talk.transport.loseConnection()
    await until(lambda: talk.lost_at is not None, talk)
    factory.abort_all()
    await maybeDeferred(port.stopListening)


@on_sockets
async def test_a_client_that_trusts_the_certificate_is_served(tmp_path: Path) -> None:
    issued = issue("localhost", authority=True)
    (tmp_path / "cert.pem").write_bytes(issued.pem)
    (tmp_path / "key.pem").write_bytes(pem_of_key(issued.key))
    pair = read_pair(Pair(str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")))
    port, factory = await listen(pair)
    talk = await connect(port, issued.pem)

    talk.transport.write(b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello")
    await until(lambda: talk.received.endswith(b"hello"), talk)
    assert b"X-Peer: 127.0.0.1\r\n" in talk.received

    talk.transport.write(GET)
    await until(lambda: talk.received.count(b"a" * 1000) * 1000 >= BIG, talk)
    await close(port, factory, talk)


@on_sockets
async def test_a_chain_in_the_certificates_file_reaches_the_client(tmp_path: Path) -> None:
    root = issue("root", authority=True)
    middle = issue("middle", by=root, authority=True)
    server = issue("localhost", by=middle)
    (tmp_path / "chain.pem").write_bytes(server.pem + middle.pem)
    (tmp_path / "key.pem").write_bytes(pem_of_key(server.key))
    pair = read_pair(Pair(str(tmp_path / "chain.pem"), str(tmp_path / "key.pem")))
    port, factory = await listen(pair)

    talk = await connect(port, root.pem)

    talk.transport.write(GET)
    await until(lambda: b"200 OK" in talk.received, talk)
    await close(port, factory, talk)


@pytest.mark.parametrize("offers", [(b"h2", b"http/1.1"), (b"http/1.1",)])
@on_sockets
async def test_a_client_that_offers_protocols_is_told_which_one_is_spoken(
    tmp_path: Path, offers: tuple[bytes, ...]
) -> None:
    issued = issue("localhost", authority=True)
    port, factory = await listen(written(tmp_path, issued))
    talk = await connect(port, issued.pem, offers=offers)

    talk.transport.write(GET)

    await until(lambda: b"200 OK" in talk.received, talk)
    assert INegotiated(talk.transport).negotiatedProtocol == b"http/1.1"
    await close(port, factory, talk)


@on_sockets
async def test_a_client_that_does_not_answer_our_goodbye_keeps_no_connection(tmp_path: Path) -> None:
    """As one whose idle connections lie in a pool that nobody looks at."""
    issued = issue("localhost", authority=True)
    port, factory = await listen(written(tmp_path, issued), Limits(idle_seconds=0.3))
    talk = await connect(port, issued.pem)
    talk.transport.write(b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello")
    await until(lambda: talk.received.endswith(b"hello"), talk)

    talk.transport.pauseProducing()  # so that nothing tells it, and nothing tells this test
    await once(lambda: not factory.connections, "the connection stays")

    talk.transport.resumeProducing()
    await close(port, factory, talk)


@pytest.mark.parametrize("cut", [False, True])
@on_sockets
async def test_a_client_that_leaves_is_noticed_although_it_has_sent_too_much_to_be_read(
    tmp_path: Path, cut: bool
) -> None:
    exchanges: list[Exchange] = []

    async def wait(exchange: Exchange) -> None:
        exchanges.append(exchange)
        await Deferred()

    issued = issue("localhost", authority=True)
    port, factory = await listen(written(tmp_path, issued), handler=wait)
    talk = await connect(port, issued.pem)
    talk.transport.write(GET)
    talk.transport.write(GET * 3000)
    await once(lambda: bool(exchanges), "its first request is not there")
    if cut:
        talk.transport.abortConnection()
    else:
        cast("Any", talk.transport).transport.loseConnection()  # without a goodbye: nobody would answer

    await once(lambda: exchanges[0].gone, "it is still waited for")
    await close(port, factory, talk)


@on_sockets
async def test_what_a_slow_client_has_still_to_take_is_known_down_to_the_kernel(tmp_path: Path) -> None:
    exchanges: list[Exchange] = []

    async def keep(exchange: Exchange) -> None:
        exchanges.append(exchange)
        exchange.respond(200, bytes(20_000_000))

    issued = issue("localhost", authority=True)
    port, factory = await listen(written(tmp_path, issued), handler=keep)
    talk = await connect(port, issued.pem)
    talk.transport.write(GET)
    await until(lambda: talk.received, talk)
    talk.transport.pauseProducing()
    outlet = exchanges[0].outlet

    end = reactor().seconds() + DEADLINE
    while outlet.untaken <= outlet.buffered or not outlet.buffered:
        assert reactor().seconds() < end, (outlet.untaken, outlet.buffered)
        await deferLater(reactor(), 0.02)

    talk.transport.resumeProducing()
    await until(lambda: len(talk.received) > 20_000_000, talk)
    await close(port, factory, talk)


@on_sockets
async def test_a_local_model_behind_https_is_talked_to_in_tls(tmp_path: Path) -> None:
    issued = issue("localhost", authority=True)
    port, factory = await listen(written(tmp_path, issued))
    security = Security(lambda _: optionsForClientTLS("localhost", trustRoot=Certificate.loadPEM(issued.pem)))
    pool = Pool(reactor())
    upstream = LocalUpstream(pool, security)
    address = parse_proxy(f"https://127.0.0.1:{cast('IPv4Address', port.getHost()).port}")
    outcomes: list[Outcome] = []

    async def forward(exchange: Exchange) -> None:
        body = await exchange.body()
        model = ModelConfig(id="m")
        outcomes.append(await upstream.forward(exchange, address, model, exchange.head.target, body))

    front = ServerFactory(forward, reactor())
    front_port = reactor().listenTCP(0, front, interface="127.0.0.1")
    talk = Talk()
    await connectProtocol(HostnameEndpoint(reactor(), "127.0.0.1", front_port.getHost().port), talk)

    talk.transport.write(b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % BIG + b"b" * BIG)
    await until(lambda: talk.received.endswith(b"b" * BIG), talk)
    talk.transport.write(b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nagain")
    await until(lambda: talk.received.endswith(b"again"), talk)

    assert [outcome.ended for outcome in outcomes] == [Ended.COMPLETE] * 2
    assert factory.connections == 1
    pool.close()
    front.abort_all()
    await maybeDeferred(front_port.stopListening)
    await close(port, factory, talk)


@on_sockets
async def test_a_client_that_trusts_another_certificate_is_not_served(tmp_path: Path) -> None:
    issued, other = issue("localhost", authority=True), issue("localhost", authority=True)
    (tmp_path / "cert.pem").write_bytes(issued.pem)
    (tmp_path / "key.pem").write_bytes(pem_of_key(issued.key))
    port, factory = await listen(Pair(str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")))
    talk = await connect(port, other.pem)

    talk.transport.write(GET)

    await until(lambda: talk.lost_at is not None, talk)
    assert talk.received == b""
    await close(port, factory, talk)
