"""TLS on a real socket: the server's certificate is checked, and the data path works behind it."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.defer import maybeDeferred
from twisted.internet.endpoints import (
    HostnameEndpoint,
    connectProtocol,
    serverFromString,
    wrapClientTLS,
)
from twisted.internet.interfaces import IListeningPort
from twisted.internet.ssl import Certificate, optionsForClientTLS

from llamaswap.http1.exchange import Exchange
from llamaswap.http1.server import ServerFactory
from llamaswap.tls import Pair, read_pair, with_tls
from support.http1_sockets import DEADLINE, Talk, on_sockets, reactor, until
from support.tls_certificates import issue, pem_of_key

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


async def listen(pair: Pair) -> tuple[IListeningPort, ServerFactory]:
    factory = ServerFactory(answer, reactor())
    endpoint = serverFromString(reactor(), with_tls("tcp:0:interface=127.0.0.1", pair))
    return cast("IListeningPort", await endpoint.listen(factory)), factory


async def connect(port: IListeningPort, trusted: bytes) -> Talk:
    """A client that believes in one authority and expects `localhost`."""
    options = optionsForClientTLS("localhost", trustRoot=Certificate.loadPEM(trusted))
    plain = HostnameEndpoint(
        reactor(), "127.0.0.1", cast("IPv4Address", port.getHost()).port, timeout=DEADLINE
    )
    talk = Talk()
    await connectProtocol(wrapClientTLS(options, plain), talk)
    return talk


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
