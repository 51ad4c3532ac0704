"""Peers behind https, on real sockets with real certificates."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from OpenSSL import SSL
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IOpenSSLServerConnectionCreator
from twisted.internet.protocol import Factory
from twisted.internet.tcp import Port
from zope.interface import implementer

from llamaswap.http1.client import Pool, UpstreamFailed
from llamaswap.http1.framing import Framing, Sink
from llamaswap.http1.heads import ResponseHead
from llamaswap.http1.securing import Security
from llamaswap.http1.upstream import UpstreamConnection
from support.http1_sockets import DEADLINE, Talk, finish, on_sockets, reactor, until

REQUEST = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


@implementer(IOpenSSLServerConnectionCreator)
class Shown:
    """A certificate for one name that answers for itself, and its key: what a peer shows."""

    def __init__(self, name: x509.GeneralName) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "peer")])
        now = datetime.datetime.now(datetime.UTC)
        self._certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([name]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def pem(self) -> bytes:
        """What who trusts it must have."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def serverConnectionForTLS(self, protocol: object) -> SSL.Connection:
        """What Twisted listens with."""
        context = SSL.Context(SSL.TLS_METHOD)
        context.use_certificate(self._certificate)
        context.use_privatekey(self._key)
        return SSL.Connection(context, None)


LOOPBACK = Shown(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
STRANGER = Shown(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
LOCALHOST = Shown(x509.DNSName("localhost"))


class Heard:
    """A receiver that remembers."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.over: Deferred[str] = Deferred()
        self.over.addTimeout(DEADLINE, reactor())

    def interim(self, head: ResponseHead) -> None: ...

    def head(self, head: ResponseHead, framing: Framing, *, more: bool) -> Sink | None: ...

    def data(self, data: bytes) -> None:
        self.body += data

    def ended(self, size: int) -> None:
        self.over.callback("ended")

    def failed(self, reason: str, size: int) -> None:
        self.over.callback(reason)

    def drained(self) -> None: ...


@dataclass
class Peer:
    """A peer that listens, with TLS or without."""

    port: Port
    talks: list[Talk]

    def __post_init__(self) -> None:
        self.number = int(self.port.getHost().port)


class Place:
    """Peers and pools that are gone after the test."""

    def __init__(self, trusted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._trusted = trusted
        self._peers: list[Peer] = []
        self._pools: list[Pool] = []
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))

    def peer(self, shown: Shown | None) -> Peer:
        talks: list[Talk] = []

        def build() -> Talk:
            talks.append(Talk())
            return talks[-1]

        factory = Factory.forProtocol(build)
        if shown is None:
            port = reactor().listenTCP(0, factory, interface="127.0.0.1")
        else:
            port = reactor().listenSSL(0, factory, shown, interface="127.0.0.1")
        self._peers.append(Peer(port, talks))
        return self._peers[-1]

    def pool(self, trusted: Shown, handshake_timeout: float = DEADLINE) -> Pool:
        """A pool that believes one certificate only."""
        self._trusted.write_bytes(trusted.pem)
        pool = Pool(reactor(), security=Security(handshake_timeout=handshake_timeout))
        self._pools.append(pool)
        return pool

    async def clear(self) -> None:
        for pool in self._pools:
            pool.close()
        for peer in self._peers:
            await maybeDeferred(peer.port.stopListening)
            for talk in peer.talks:
                if talk.lost_at is None and talk.connected:
                    talk.transport.abortConnection()
                await until(partial(_lost, talk), talk)


def _lost(talk: Talk) -> bool:
    return talk.lost_at is not None


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    place = Place(tmp_path / "trusted.pem", monkeypatch)
    yield place
    finish(place.clear())


async def failure(pool: Pool, host: str, port: int) -> str:
    """Why no connection comes about."""
    with pytest.raises(UpstreamFailed) as caught:
        await pool.connect(host, port)
    return caught.value.reason


async def exchange(connection: UpstreamConnection, peer: Peer, body: bytes) -> Heard:
    """Ask over a connection, and let the peer answer with this body."""
    heard = Heard()
    connection.send([REQUEST], b"GET", heard)
    (talk,) = peer.talks
    await until(lambda: talk.received.endswith(REQUEST), talk)
    talk.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    assert await heard.over == "ended"
    return heard


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", LOOPBACK), ("localhost", LOCALHOST)])
@on_sockets
async def test_a_peer_that_proves_its_name_is_talked_to_and_kept(
    place: Place, host: str, shown: Shown
) -> None:
    peer, pool = place.peer(shown), place.pool(shown)
    connection = await pool.connect(host, peer.number)

    heard = await exchange(connection, peer, b"x" * 1_000_000)
    assert bytes(heard.body) == b"x" * 1_000_000

    assert pool.take(host, peer.number) is connection
    peer.talks[0].received.clear()
    await exchange(connection, peer, b"again")
    assert len(peer.talks) == 1


@on_sockets
async def test_a_large_request_gets_through(place: Place) -> None:
    peer, pool = place.peer(LOOPBACK), place.pool(LOOPBACK)
    connection = await pool.connect("127.0.0.1", peer.number)
    heard, body = Heard(), b"y" * 3_000_000

    connection.send([b"POST / HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n", body], b"POST", heard)
    (talk,) = peer.talks
    await until(lambda: talk.received.endswith(body), talk)
    talk.transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    assert await heard.over == "ended"


@on_sockets
async def test_an_unknown_certificate_is_not_trusted(place: Place) -> None:
    peer, pool = place.peer(STRANGER), place.pool(LOOPBACK)
    reason = await failure(pool, "127.0.0.1", peer.number)
    assert reason.startswith(f"cannot speak TLS with 127.0.0.1:{peer.number}: ")
    assert "certificate verify failed" in reason


@on_sockets
async def test_a_certificate_for_another_name_is_not_trusted(place: Place) -> None:
    peer, pool = place.peer(LOCALHOST), place.pool(LOCALHOST)
    assert (await failure(pool, "127.0.0.1", peer.number)).endswith("its certificate is for another name")


@on_sockets
async def test_a_peer_that_says_nothing_is_given_up(place: Place) -> None:
    peer, pool = place.peer(None), place.pool(LOOPBACK, handshake_timeout=0.2)
    assert (await failure(pool, "127.0.0.1", peer.number)).endswith("no answer within 0.2 s")


@on_sockets
async def test_a_port_where_nobody_listens_is_a_failed_upstream(place: Place) -> None:
    peer, pool = place.peer(None), place.pool(LOOPBACK)
    await maybeDeferred(peer.port.stopListening)
    assert "cannot connect to" in await failure(pool, "127.0.0.1", peer.number)
