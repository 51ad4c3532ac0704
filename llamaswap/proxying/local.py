"""Hand one exchange to a local model's server, as llama-swap would.

Knows the rules for heads.  How bytes cross over is `llamaswap.http1.relay`'s part.
"""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Iterable, Iterator
from typing import Any

from llamaswap.calls.call import LOOKS
from llamaswap.config.model import ModelConfig, Timeouts
from llamaswap.http1.body import Body
from llamaswap.http1.client import Pool
from llamaswap.http1.delivery import Into
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.framing import CHUNKED, LENGTH
from llamaswap.http1.heads import HOP_BY_HOP, RequestHead, ResponseHead, crossing_fields, upgrade_headers
from llamaswap.http1.relay import HIGH_WATER_BYTES, Observer, Outcome, relay
from llamaswap.http1.securing import Security
from llamaswap.http1.writing import format_lines, request_line
from llamaswap.processes.health import Address

Field = tuple[bytes, bytes]

NO_LIMIT = 86400.0  # seconds; a timeout of 0 means none

# Said anew for the request that goes upstream, or already answered by us.
_OURS = HOP_BY_HOP | {b"content-length", b"expect", b"x-forwarded-for"}
_DECODABLE = frozenset({b"gzip", b"deflate"})


class LocalUpstream:
    """Talks to the servers of local models.

    Args:
        pool: the connections; one pool for all models, but for those with timeouts or security of their own.
        security: for servers behind https; each model's `tlsHandshake` replaces its timeout.
        high_water: bytes of an answer that may wait for a slow client; 0 means no limit.
    """

    def __init__(
        self, pool: Pool, security: Security | None = None, *, high_water: int = HIGH_WATER_BYTES
    ) -> None:
        self._pool = pool
        self._high_water = high_water or sys.maxsize
        self._security = security or Security()
        self._pools: dict[str, tuple[Timeouts, bool, Pool]] = {}  # by model

    def forward(
        self,
        exchange: Exchange,
        address: Address,
        model: ModelConfig,
        target: bytes,
        body: Body,
        *,
        observer: Observer | None = None,
        metered: bool = False,
        into: Into | None = None,
    ) -> Coroutine[Any, Any, Outcome]:
        """Send the request and relay the response; returns when the upstream is done.

        Args:
            address: where the model's server answers now.
            target: path and query as the model's server shall see them, still escaped.
            observer: sees the response in passing.
            metered: it has to understand what it sees, so that the upstream may
                compress only in ways that it can undo.
            into: asked for a response that has begun already; the upstream's body goes there.

        Raises:
            UpstreamFailed: nothing has been sent to the client.
        """
        head = exchange.head
        start = _start(head, address, target, exchange.client_host, metered=metered, named=into is None)
        return relay(
            exchange,
            self._pool_for(address, model),
            address.host,
            address.port,
            [start + framing_lines(body), *body.wire],
            method=head.method,
            observer=observer,
            add_headers=unbuffered,
            header_timeout=model.timeouts.response_header,
            high_water=self._high_water,
            # Some looks, such as the heartbeats of a page, never end.
            drain=model.drain_on_disconnect and head.method not in LOOKS,
            into=into,
        )

    def _pool_for(self, address: Address, model: ModelConfig) -> Pool:
        limits = model.timeouts
        known = self._pools.get(model.id)
        if known is not None and known[0] is limits and known[1] == address.secure:
            return known[2]
        pool = self._pool.like(
            connect_timeout=limits.connect or NO_LIMIT,
            idle_seconds=limits.idle_conn or NO_LIMIT,
            security=Security(self._security.options, limits.tls_handshake) if address.secure else None,
        )
        self._pools[model.id] = limits, address.secure, pool
        return pool


def _start(
    head: RequestHead, address: Address, target: bytes, client_host: str, *, metered: bool, named: bool
) -> bytes:
    """Return all of the upstream's head but how the body is framed; made once for requests that are alike.

    Args:
        named: an encoding may be asked for, since the client will be told of it.
    """
    # HTTP/1.0 knows no Host, and what we send on is 1.1.
    host = None if b"host" in head.kin.firsts else address.authority
    key = (address.base_path, address.query, target, client_host, metered, named, host)
    start: bytes | None = head.kin.memories.get(key)
    if start is not None:
        return start

    def compute(head: RequestHead) -> bytes:
        fields = upstream_fields(head, client_host, metered=metered)
        if not named:
            fields = [field for field in fields if field[0].lower() != b"accept-encoding"]
        if host is not None:
            fields.insert(0, (b"Host", host.encode()))
        return format_lines(request_line(head.method, address.target(target)), fields)

    return head.derived(key, compute)


def upstream_fields(head: RequestHead, client_host: str, *, metered: bool) -> list[Field]:
    """Return the header fields that the upstream sees, but the one that frames the body.

    The client's own, Host and credentials included, without those of one hop
    but with the wish for an upgrade; the client's address is appended to
    X-Forwarded-For.  On metered routes Accept-Encoding keeps only what the
    meter can decode.
    """
    firsts = head.kin.firsts
    fields = crossing_fields(head, _OURS)
    if metered and b"accept-encoding" in firsts:
        fields = list(_decodable(fields))
    hops = head.kin.values(b"x-forwarded-for")
    if client_host:
        hops.append(client_host.encode())
    if hops:
        fields.append((b"X-Forwarded-For", b", ".join(hops)))
    if b"upgrade" in firsts:
        fields += upgrade_headers(head.headers)
    return fields


def framing_lines(body: Body) -> bytes:
    """Return the end of a head: the field that frames the body, and the blank line."""
    if body.framing is LENGTH:
        return b"Content-Length: %d\r\n\r\n" % body.size
    return b"Transfer-Encoding: chunked\r\n\r\n" if body.framing is CHUNKED else b"\r\n"


def unbuffered(head: ResponseHead) -> Iterable[Field]:
    """Ask proxies between us and the client not to hold an event stream back."""
    if b"text/event-stream" in (head.get(b"content-type") or b""):
        return ((b"X-Accel-Buffering", b"no"),)
    return ()


def text(value: bytes | None) -> str:
    """Return a header value as text, '' when absent."""
    return (value or b"").decode("latin-1")


def _decodable(fields: Iterable[Field]) -> Iterator[Field]:
    for name, value in fields:
        if name.lower() != b"accept-encoding":
            yield name, value
            continue
        kept = [item for item in value.split(b",") if item.split(b";")[0].strip().lower() in _DECODABLE]
        if kept:
            yield name, b",".join(kept).strip()
