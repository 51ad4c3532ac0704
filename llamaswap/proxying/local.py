"""Hand one exchange to a local model's server, as llama-swap would.

Knows the rules for heads (http contract, section 6).  How bytes cross over is
`llamaswap.http1.relay`'s part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from llamaswap.config.model import ModelConfig, Timeouts
from llamaswap.http1.body import Body
from llamaswap.http1.client import Pool
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.framing import Framing
from llamaswap.http1.heads import (
    Headers,
    RequestHead,
    ResponseHead,
    end_to_end,
    format_request,
    upgrade_headers,
)
from llamaswap.http1.relay import Observer, Outcome, relay
from llamaswap.http1.securing import Security
from llamaswap.http1.stream import ResponseStream
from llamaswap.processes.health import Address

Field = tuple[bytes, bytes]

NO_LIMIT = 86400.0  # seconds; a timeout of 0 means none

# Said anew for the request that goes upstream, or already answered by us.
_OURS = frozenset({b"content-length", b"expect", b"x-forwarded-for"})
_DECODABLE = frozenset({b"gzip", b"deflate"})


class LocalUpstream:
    """Talks to the servers of local models.

    Args:
        pool: the connections; one pool for all models, but for those with timeouts or security of their own.
        security: for servers behind https; each model's `tlsHandshake` replaces its timeout.
    """

    def __init__(self, pool: Pool, security: Security | None = None) -> None:
        self._pool = pool
        self._security = security or Security()

    async def forward(
        self,
        exchange: Exchange,
        address: Address,
        model: ModelConfig,
        target: bytes,
        body: Body,
        *,
        observer: Observer | None = None,
        metered: bool = False,
        into: ResponseStream | None = None,
    ) -> Outcome:
        """Send the request and relay the response; returns when the upstream is done.

        Args:
            address: where the model's server answers now.
            target: path and query as the model's server shall see them, still escaped.
            observer: sees the response in passing.
            metered: it has to understand what it sees, so that the upstream may
                compress only in ways that it can undo.
            into: a response that has begun already; the upstream's body goes there.

        Raises:
            UpstreamFailed: nothing has been sent to the client.
        """
        head = exchange.head
        fields = upstream_fields(head, body, exchange.client_host, metered=metered)
        if into is not None:  # its head is out, and says nothing of an encoding
            fields = [field for field in fields if field[0].lower() != b"accept-encoding"]
        if head.get(b"host") is None:  # HTTP/1.0 knows none, and what we send on is 1.1
            fields.insert(0, (b"Host", address.authority.encode()))
        request = [format_request(head.method, address.base_path.encode() + target, fields), *body.wire]
        return await relay(
            exchange,
            self._pool_for(address, model.timeouts),
            address.host,
            address.port,
            request,
            method=head.method,
            observer=observer,
            add_headers=unbuffered,
            header_timeout=model.timeouts.response_header,
            drain=model.drain_on_disconnect,
            into=into,
        )

    def _pool_for(self, address: Address, limits: Timeouts) -> Pool:
        return self._pool.like(
            connect_timeout=limits.connect or NO_LIMIT,
            idle_seconds=limits.idle_conn or NO_LIMIT,
            security=Security(self._security.options, limits.tls_handshake) if address.secure else None,
        )


def upstream_fields(head: RequestHead, body: Body, client_host: str, *, metered: bool) -> list[Field]:
    """Return the header fields that the upstream sees.

    The client's own, Host and credentials included, without those of one hop
    but with the wish for an upgrade; the client's address is appended to
    X-Forwarded-For.  On metered routes Accept-Encoding keeps only what the
    meter can decode.
    """
    fields = [field for field in end_to_end(head.headers) if field[0].lower() not in _OURS]
    if metered:
        fields = list(_decodable(fields))
    fields += _forwarded_for(head.headers, client_host)
    fields += upgrade_headers(head.headers)
    if body.framing is Framing.CHUNKED:
        fields.append((b"Transfer-Encoding", b"chunked"))
    elif body.framing is Framing.LENGTH:
        fields.append((b"Content-Length", b"%d" % body.size))
    return fields


def unbuffered(head: ResponseHead) -> Iterable[Field]:
    """Ask proxies between us and the client not to hold an event stream back."""
    if b"text/event-stream" in (head.get(b"content-type") or b""):
        return ((b"X-Accel-Buffering", b"no"),)
    return ()


def text(value: bytes | None) -> str:
    """Return a header value as text, '' when absent."""
    return (value or b"").decode("latin-1")


def _forwarded_for(headers: Headers, client_host: str) -> Sequence[Field]:
    hops = [value for name, value in headers if name.lower() == b"x-forwarded-for"]
    if client_host:
        hops.append(client_host.encode())
    return [(b"X-Forwarded-For", b", ".join(hops))] if hops else []


def _decodable(fields: Iterable[Field]) -> Iterator[Field]:
    for name, value in fields:
        if name.lower() != b"accept-encoding":
            yield name, value
            continue
        kept = [item for item in value.split(b",") if item.split(b";")[0].strip().lower() in _DECODABLE]
        if kept:
            yield name, b",".join(kept).strip()
