"""Hand one exchange to a peer: another server, which has models of its own.

Knows the rules for heads.  How bytes cross over is `llamaswap.http1.relay`'s part.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass

from twisted.internet.defer import Deferred

from llamaswap.calls.call import LOOKS
from llamaswap.config.model import PeerConfig
from llamaswap.errors import UpstreamUnreachable
from llamaswap.http1.body import Body
from llamaswap.http1.client import ClientReactor, Pool, UpstreamFailed
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.heads import RequestHead
from llamaswap.http1.relay import HIGH_WATER_BYTES, Observer, Outcome, relay
from llamaswap.http1.securing import Security
from llamaswap.http1.writing import format_lines, request_line
from llamaswap.processes.health import Address, parse_proxy
from llamaswap.proxying.local import NO_LIMIT, Field, framing_lines, unbuffered, upstream_fields

_CREDENTIALS = frozenset({b"authorization", b"x-api-key"})
_LINE_ENDS = frozenset("\r\n\0")  # with one of these, a key can't be the value of a field


class PeerUnreachable(UpstreamUnreachable):
    """The peer gave no response."""

    def __init__(self, why: str) -> None:
        super().__init__(f"peer proxy error: {why}")


class Abroad:
    """Counts the jobs that are with peers, of one configuration or several."""

    def __init__(self) -> None:
        self.now = 0
        self._waiting: list[Deferred[None]] = []

    def __enter__(self) -> None:
        self.now += 1

    def __exit__(self, *_error: object) -> None:
        self.now -= 1
        self._say_when_none()

    def when_none(self) -> Deferred[None]:
        """Return a Deferred that fires when none is."""
        none: Deferred[None] = Deferred(self._waiting.remove)
        self._waiting.append(none)
        self._say_when_none()
        return none

    def _say_when_none(self) -> None:
        while self._waiting and not self.now:
            self._waiting.pop().callback(None)


@dataclass(frozen=True, slots=True)
class _Way:
    """How a peer is reached: with connections of its own, since its timeouts are its own, too."""

    address: Address
    pool: Pool


class PeerUpstream:
    """Talks to the peers of one configuration.

    Args:
        reactor: connects.
        peers: by id.
        security: for peers with an https URL; each one's `tlsHandshake` replaces its timeout.
        mark: our name in Via, by which a request that comes back to us is known; b"" adds none.
        abroad: counts what is more than a look.
        high_water: bytes of an answer that may wait for a slow client; 0 means no limit.
    """

    def __init__(
        self,
        reactor: ClientReactor,
        peers: Mapping[str, PeerConfig],
        security: Security | None = None,
        *,
        mark: bytes = b"",
        abroad: Abroad | None = None,
        high_water: int = HIGH_WATER_BYTES,
    ) -> None:
        self._high_water = high_water or sys.maxsize
        self._via = b"Via: 1.1 %b\r\n" % mark if mark else b""
        self._abroad = abroad or Abroad()
        self._reactor = reactor
        self._security = security or Security()
        self._ways: dict[str, _Way | str] = {peer.id: self._way(peer) for peer in peers.values()}

    async def forward(
        self,
        exchange: Exchange,
        peer: PeerConfig,
        target: bytes,
        body: Body,
        *,
        observer: Observer | None = None,
        metered: bool = False,
    ) -> Outcome:
        """Send the request and relay the response; returns when the peer is done.

        Args:
            peer: one of the configuration's.
            target: path and query behind the peer's own path, still escaped.
            body: what the peer shall get, framed.
            observer: sees the response in passing.
            metered: as for a local model.

        Raises:
            PeerUnreachable: nothing has been sent to the client.
        """
        way = self._ways[peer.id]
        if isinstance(way, str):
            raise PeerUnreachable(way)
        head, address = exchange.head, way.address
        start = _start(head, address, target, peer.api_key, metered=metered)
        request = [start + self._via + framing_lines(body), *body.wire]
        try:
            with nullcontext() if head.method in LOOKS else self._abroad:
                return await relay(
                    exchange,
                    way.pool,
                    address.host,
                    address.port,
                    request,
                    method=head.method,
                    observer=observer,
                    add_headers=unbuffered,
                    header_timeout=peer.timeouts.response_header,
                    high_water=self._high_water,
                )
        except UpstreamFailed as failed:
            raise PeerUnreachable(failed.reason) from failed

    def close(self) -> None:
        """Drop the idle connections, and keep none from now on; responses under way go on."""
        for way in self._ways.values():
            if isinstance(way, _Way):
                way.pool.close()

    def _way(self, peer: PeerConfig) -> _Way | str:
        """Return how to reach a peer, or why it cannot be reached."""
        try:
            address = parse_proxy(peer.proxy)
        except ValueError as error:
            return str(error)
        if not _LINE_ENDS.isdisjoint(peer.api_key):
            return f"the apiKey of peer {peer.id} holds a line end"
        limits = peer.timeouts
        security = Security(self._security.options, limits.tls_handshake) if address.secure else None
        pool = Pool(
            self._reactor,
            connect_timeout=limits.connect or NO_LIMIT,
            idle_seconds=limits.idle_conn or NO_LIMIT,
            security=security,
        )
        return _Way(address, pool)


def _start(head: RequestHead, address: Address, target: bytes, api_key: str, *, metered: bool) -> bytes:
    """Return all of a peer's head but how the body is framed; made once for requests that are alike."""
    target = address.target(target)
    key = ("peer", target, address.authority, api_key, metered)

    def compute(head: RequestHead) -> bytes:
        fields = peer_fields(head, address.authority, api_key, metered=metered)
        return format_lines(request_line(head.method, target), fields)

    return head.derived(key, compute)


def peer_fields(head: RequestHead, authority: str, api_key: str, *, metered: bool) -> list[Field]:
    """Return the header fields that a peer sees, but the one that frames the body.

    The client's own without those of one hop, and without any word of where
    they come from; Host is the peer's.

    Args:
        authority: host and port as in the peer's URL.
        api_key: replaces the client's credentials; '' passes those on.
    """
    fields = [field for field in upstream_fields(head, "", metered=metered) if not _is_of_the_way(field[0])]
    if api_key:
        key = api_key.encode()
        fields = [field for field in fields if field[0].lower() not in _CREDENTIALS]
        fields += ((b"Authorization", b"Bearer " + key), (b"X-Api-Key", key))
    return [(b"Host", authority.encode()), *fields]


def _is_of_the_way(name: bytes) -> bool:
    """Return whether a field tells how the request came here, or whom it was meant for."""
    name = name.lower()
    return name in (b"host", b"forwarded") or name.startswith(b"x-forwarded-")
