"""One exchange answered by an upstream, byte for byte.

Knows how a response crosses from one connection to the other, at whose pace,
and what becomes of it when either side leaves.  Does not know what is asked,
or why this upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from twisted.internet.defer import CancelledError, Deferred

from llamaswap.http1.client import Pool, UpstreamFailed
from llamaswap.http1.crossing import Crossing, cross, replaced
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.framing import Framing, Sink
from llamaswap.http1.heads import (
    ResponseHead,
    end_to_end,
    format_response,
    upgrade_headers,
    usual_reason,
)
from llamaswap.http1.parsing import Malformed
from llamaswap.http1.stream import ResponseStream
from llamaswap.http1.tunnel import ClientToUpstream
from llamaswap.http1.upstream import UpstreamConnection

HIGH_WATER_BYTES = 8 << 20


class Ended(Enum):
    """How a relayed response came to its end."""

    COMPLETE = auto()
    UPSTREAM_DIED = auto()  # in the middle; the client's connection was cut
    CLIENT_LEFT = auto()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one relayed response."""

    ended: Ended
    head: ResponseHead
    body_bytes: int  # decoded, as far as they were read from the upstream
    first_byte: float | None  # reactor.seconds() when the response head was here


class Observer(Protocol):
    """Sees a response in passing; chunk framing is not shown."""

    def head(self, head: ResponseHead) -> None:
        """The final head, as the upstream sent it."""

    def data(self, data: bytes) -> None:
        """Some of the decoded body; never empty."""


AddHeaders = Callable[[ResponseHead], Iterable[tuple[bytes, bytes]]]


async def relay(
    exchange: Exchange,
    pool: Pool,
    host: str,
    port: int,
    request: Sequence[bytes],
    *,
    method: bytes,
    observer: Observer | None = None,
    add_headers: AddHeaders | None = None,
    header_timeout: float = 0,
    high_water: int = HIGH_WATER_BYTES,
    drain: bool = False,
    into: ResponseStream | None = None,
) -> Outcome:
    """Send `request` and hand the response to the exchange's client as it comes.

    Returns when the upstream's response has ended; the client may still be
    reading the rest. Cancelling aborts the upstream connection.

    Args:
        request: head and body, ready for the wire; not changed, and kept until the end.
        method: decides, with the status, whether the response has a body.
        add_headers: fields that replace the response's own of the same name.
        header_timeout: seconds until the response head must be here; 0 waits for ever.
        high_water: bytes buffered for a slow client before the upstream is held back.
        drain: after the client has left, read on and discard until the upstream ends.
        into: a response that has begun already; it gets the decoded body, and its end. The
            upstream's own head is lost, so the request must not allow a Content-Encoding.

    Raises:
        UpstreamFailed: nothing of this response has been sent to the client.
        CancelledError: cancelled before a response head had come.
    """
    if exchange.gone:
        raise CancelledError
    run = _Relay(exchange, into, method, observer, add_headers, high_water, drain, pool.seconds)
    connection = pool.take(host, port)
    if connection is not None:
        try:
            return await run.over(connection, request, header_timeout)
        except _Stale:
            pass  # the upstream had closed it before our request arrived
    return await run.over(await pool.connect(host, port), request, header_timeout)


class _Stale(Exception):
    """A connection from the pool was dead before the first byte of a response."""


class _Relay:
    """The receiver of one response, and its way to the client."""

    __slots__ = (
        "_add_headers",
        "_clock",
        "_connection",
        "_crossing",
        "_done",
        "_drain",
        "_exchange",
        "_first_byte",
        "_head",
        "_held",
        "_high_water",
        "_into",
        "_method",
        "_observer",
        "_size",
        "_tunnel",
    )

    def __init__(
        self,
        exchange: Exchange,
        into: ResponseStream | None,
        method: bytes,
        observer: Observer | None,
        add_headers: AddHeaders | None,
        high_water: int,
        drain: bool,
        clock: Callable[[], float],
    ) -> None:
        self._exchange = exchange
        self._into = into
        self._method = method
        self._observer = observer
        self._add_headers = add_headers
        self._high_water = high_water
        self._drain = drain
        self._clock = clock
        self._connection: UpstreamConnection | None = None
        self._done: Deferred[Ended] | None = None
        self._head: ResponseHead | None = None
        self._first_byte: float | None = None
        self._held = b""  # the client's head, waiting to leave with the first body bytes
        # A response under way has a framing of its own; what it needs is the bare body.
        self._crossing = Crossing.AS_THEY_CAME if into is None else Crossing.DECHUNKED
        self._tunnel: ClientToUpstream | None = None
        self._size = 0

    async def over(
        self, connection: UpstreamConnection, request: Sequence[bytes], header_timeout: float
    ) -> Outcome:
        """Relay over this connection."""
        self._connection = connection
        self._done = Deferred(self._cancelled)
        self._exchange.on_drain = self._client_drained
        connection.send(request, self._method, self, header_timeout)
        try:
            ended = await self._done
        except CancelledError:
            if self._connection is None:
                raise
            ended = await self._drained_off()
        if self._head is None:
            raise CancelledError
        return Outcome(ended, self._head, self._size, self._first_byte)

    # What the upstream connection calls (`upstream.Receiver`).

    def interim(self, head: ResponseHead) -> None:
        """Pass a 1xx head on."""
        self._exchange.interim(format_response(head.status, end_to_end(head.headers), reason=head.reason))

    def head(self, head: ResponseHead, framing: Framing, *, more: bool) -> Sink | None:
        """Send the client its head, or keep it for a moment when body bytes are at hand."""
        self._check(head)
        self._head = head
        self._first_byte = self._clock()
        observer = self._observer
        if observer is not None:
            observer.head(head)
        if self._into is None and not self._exchange.gone:
            self._held = self._client_head(head, framing)
            if not more:
                self._flush_head()
            if head.status == 101:
                self._upgrade()
        if self._crossing is Crossing.DECHUNKED:
            return self._decoded
        return None if observer is None else observer.data

    def data(self, data: bytes) -> None:
        """Hand body bytes on as they came."""
        exchange = self._exchange
        if self._crossing is not Crossing.AS_THEY_CAME:
            self._write_changed(data)
        elif self._held:
            held, self._held = self._held, b""
            exchange.write_all((held, data))
        else:
            exchange.write(data)
        if exchange.buffered > self._high_water and self._connection is not None:
            self._connection.pause_reading()

    def ended(self, size: int) -> None:
        """The upstream is done, whether or not the client has everything yet."""
        exchange = self._exchange
        self._count(size)
        self._flush_head()
        if self._crossing is Crossing.ENCHUNKED:
            exchange.write(b"0\r\n\r\n")
        gone = exchange.gone
        self._let_go()
        (self._into or exchange).finish()
        self._fire(Ended.CLIENT_LEFT if gone else Ended.COMPLETE)

    def failed(self, reason: str, size: int) -> None:
        """The upstream died, or never came to life."""
        self._count(size)
        connection = self._connection
        self._let_go()
        if self._exchange.gone:
            self._fire(Ended.CLIENT_LEFT)
        elif self._head is not None:
            (self._into or self._exchange).abort()
            self._fire(Ended.UPSTREAM_DIED)
        elif self._done is not None:
            stale = connection is not None and connection.stale
            self._done.errback(_Stale() if stale else UpstreamFailed(reason))

    def drained(self) -> None:
        """The upstream has taken more of what the client sends it."""
        if self._tunnel is not None:
            self._tunnel.upstream_drained()

    # The client's side.

    def _check(self, head: ResponseHead) -> None:
        """Refuse a head whose body would mean nothing to the client."""
        into = self._into is not None
        if head.status == 101 and (into or not upgrade_headers(self._exchange.head.headers)):
            raise Malformed("101 for a request that asked for no upgrade")
        if into and (head.get(b"content-encoding") or b"identity").lower() != b"identity":
            raise Malformed("encoded, for a request that allowed no encoding")

    def _count(self, size: int) -> None:
        self._size = size
        if self._into is None:  # a stream counts for itself
            self._exchange.body_bytes = size

    def _client_head(self, head: ResponseHead, framing: Framing) -> bytes:
        exchange = self._exchange
        fields, self._crossing = cross(head, framing, modern=exchange.head.version == (1, 1))
        if self._add_headers is not None:
            fields = replaced(fields, self._add_headers(head))
        # The usual phrase, as Go's proxy writes it; a status that nobody knows keeps its own.
        reason = usual_reason(head.status) or head.reason
        return exchange.begin(head.status, fields, reason=reason, close=self._crossing.closes)

    def _flush_head(self) -> None:
        if self._held:
            held, self._held = self._held, b""
            self._exchange.write(held)

    def _write_changed(self, data: bytes) -> None:
        self._flush_head()
        if self._crossing is Crossing.ENCHUNKED:
            self._exchange.write(b"%x\r\n%b\r\n" % (len(data), data))
        elif self._crossing is Crossing.UNTIL_CLOSE:
            self._exchange.write(data)

    def _decoded(self, data: bytes) -> None:
        """Decoded bytes, for a client that knows no chunks or a response that makes its own."""
        self._flush_head()
        (self._into or self._exchange).write(data)
        if self._observer is not None:
            self._observer.data(data)

    def _client_drained(self) -> None:
        if self._connection is not None and self._exchange.buffered <= self._high_water // 2:
            self._connection.resume_reading()

    def _upgrade(self) -> None:
        assert self._connection is not None
        self._tunnel = ClientToUpstream(self._exchange, self._connection.outlet)
        self._exchange.take_over(self._tunnel)

    # Ends.

    def _let_go(self) -> None:
        self._connection = None
        self._exchange.on_drain = None

    def _fire(self, ended: Ended) -> None:
        done, self._done = self._done, None
        if done is not None:
            done.callback(ended)

    def _cancelled(self, done: Deferred[Ended]) -> None:
        """Cut the upstream off, or, if it cannot be stopped, let it run out."""
        connection = self._connection
        if connection is None:
            return
        self._count(connection.body_bytes)
        if self._drain and self._exchange.gone:
            return
        if self._tunnel is not None:
            connection.close()
        else:
            connection.abort()
        self._let_go()
        self._done = None
        if self._exchange.started:  # otherwise whoever cancelled may still say why
            (self._into or self._exchange).abort()
        if self._head is not None:
            done.callback(Ended.CLIENT_LEFT)

    async def _drained_off(self) -> Ended:
        """Read on for nobody until the upstream ends."""
        assert self._connection is not None
        self._connection.resume_reading()
        self._drain = False  # a second cancellation is meant
        self._done = Deferred(self._cancelled)
        return await self._done
