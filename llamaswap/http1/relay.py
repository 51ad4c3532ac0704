"""One exchange answered by an upstream.

Knows at whose pace a response crosses from one connection to the other, and
what becomes of it when either side leaves.  What the client gets of it is the
delivery's part; what is asked, or why this upstream, is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Final, NamedTuple, Protocol

from twisted.internet.defer import CancelledError, Deferred

from llamaswap.http1.client import Pool, UpstreamFailed
from llamaswap.http1.delivery import AddHeaders, Delivery, Into
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.framing import Framing, Sink
from llamaswap.http1.heads import ResponseHead, end_to_end
from llamaswap.http1.parsing import Malformed
from llamaswap.http1.tunnel import ClientToUpstream
from llamaswap.http1.upstream import UpstreamConnection
from llamaswap.http1.writing import format_response

HIGH_WATER_BYTES = 8 << 20


class Ended(Enum):
    """How a relayed response came to its end."""

    COMPLETE = auto()
    UPSTREAM_DIED = auto()  # in the middle; the client's connection was cut
    CLIENT_LEFT = auto()


_COMPLETE: Final = Ended.COMPLETE  # as in `framing`, for nearly every request


class Outcome(NamedTuple):
    """What became of one relayed response."""

    ended: Ended
    head: ResponseHead
    body_bytes: int  # without framing, as far as they were read from the upstream


class Observer(Protocol):
    """Sees a response in passing, as the upstream coded it; chunk framing is not shown."""

    def head(self, head: ResponseHead) -> None:
        """The final head, as the upstream sent it."""

    def data(self, data: bytes) -> None:
        """Some of the body; never empty."""


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
    into: Into | None = None,
) -> Outcome:
    """Send `request` and hand the response to the exchange's client as it comes, byte for byte.

    Only a gzip or deflate coding is undone for a client that did not say that it takes it.  Returns when the
    upstream's response has ended; the client may still read.  Cancelling aborts the upstream connection.

    Args:
        request: head and body, ready for the wire; not changed, and kept until the end.
        method: decides, with the status, whether the response has a body.
        add_headers: fields that replace the response's own of the same name.
        header_timeout: seconds until the response head must be here; 0 waits for ever.
        high_water: bytes buffered for a slow client before the upstream is held back.
        drain: after the client has left, read on and discard until the upstream ends; but not
            an upgraded connection, where the upstream waits for the client.
        into: asked, when the head has come, for a response that has begun already; it gets the bare
            body, and its end. The upstream's own head is lost then, so the request must not allow a
            Content-Encoding.

    Raises:
        UpstreamFailed: nothing of this response has been sent to the client.
        CancelledError: cancelled before a response head had come.
    """
    if exchange.gone:
        raise CancelledError
    delivery = Delivery(exchange, into, add_headers, high_water)
    run = _Relay(exchange, delivery, observer, high_water, drain)
    connection = pool.take(host, port)
    while True:
        if connection is None:
            connection = await pool.connect(host, port)
        try:
            return run.outcome(await run.over(connection, request, method, header_timeout))
        except _Stale:
            connection = None  # the upstream had closed it before our request arrived
        except CancelledError:
            return run.outcome(await run.drained_off())


class _Stale(Exception):
    """A connection from the pool was dead before the first byte of a response."""


class _Relay:
    """The receiver of one response."""

    __slots__ = (
        "_connection",
        "_delivery",
        "_done",
        "_drain",
        "_exchange",
        "_head",
        "_held_up",
        "_high_water",
        "_observer",
        "_size",
        "_tunnel",
    )

    def __init__(
        self,
        exchange: Exchange,
        delivery: Delivery,
        observer: Observer | None,
        high_water: int,
        drain: bool,
    ) -> None:
        self._exchange = exchange
        self._delivery = delivery
        self._observer = observer
        self._high_water = high_water
        self._drain = drain
        self._connection: UpstreamConnection | None = None
        self._done: Deferred[Ended] | None = None
        self._head: ResponseHead | None = None
        self._tunnel: ClientToUpstream | None = None
        self._held_up = False  # the upstream is, by the client
        self._size = 0

    def over(
        self, connection: UpstreamConnection, request: Sequence[bytes], method: bytes, header_timeout: float
    ) -> Deferred[Ended]:
        """Relay over this connection; fails with _Stale or UpstreamFailed."""
        self._connection = connection
        self._done = done = Deferred[Ended](self._cancelled)
        self._exchange.on_drain = self._client_drained
        connection.send(request, method, self, header_timeout)
        return done

    async def drained_off(self) -> Ended:
        """After a cancellation: where the upstream cannot be stopped, read on for nobody until it ends.

        Raises:
            CancelledError: it was stopped.
        """
        if self._connection is None:
            raise CancelledError
        self._connection.resume_reading()
        self._drain = False  # a second cancellation is meant
        self._done = Deferred(self._cancelled)
        return await self._done

    def outcome(self, ended: Ended) -> Outcome:
        """What became of it.

        Raises:
            CancelledError: it ended before a response head had come.
        """
        if self._head is None:
            raise CancelledError
        return Outcome(ended, self._head, self._size)

    # What the upstream connection calls (`upstream.Receiver`).

    def interim(self, head: ResponseHead) -> None:
        """Pass a 1xx head on."""
        self._exchange.interim(format_response(head.status, end_to_end(head.headers), reason=head.reason))

    def head(self, head: ResponseHead, framing: Framing, *, more: bool) -> Sink | None:
        """Let the client have its head."""
        delivery, observer = self._delivery, self._observer
        if head.status == 101 and self._exchange.gone:
            raise Malformed("the client of this upgrade has left")  # it has no end to drain to
        delivery.begin(head, framing, more=more)
        self._head = head
        if observer is not None:
            observer.head(head)
        if head.status == 101:
            self._upgrade()
        if delivery.bare:
            return self._bare_data
        return None if observer is None else observer.data

    def data(self, data: bytes) -> None:
        """Hand body bytes on as they came."""
        self._delivery.data(data)
        if self._exchange.outlet.buffered and self._delivery.behind and self._connection is not None:
            self._connection.pause_reading()
            if not self._held_up:
                # Or whoever waits for this upstream would wait as long as the client pleases.
                self._held_up = True
                self._exchange.hold_up()

    def ended(self, size: int) -> None:
        """The upstream is done, whether or not the client has everything yet."""
        exchange = self._exchange
        self._size = size
        self._delivery.count(size)
        gone = exchange.gone
        self._connection = exchange.on_drain = None
        good = self._delivery.complete()
        # Whoever waits for this upstream gets it before we look after the client's connection.
        self._fire(Ended.CLIENT_LEFT if gone else _COMPLETE if good else Ended.UPSTREAM_DIED)
        if good:
            self._delivery.finish()

    def failed(self, reason: str, size: int) -> None:
        """The upstream died, or never came to life."""
        self._count(size)
        connection = self._connection
        self._connection = self._exchange.on_drain = None
        if self._exchange.gone:
            self._fire(Ended.CLIENT_LEFT)
        elif self._head is not None:
            self._delivery.abort()
            self._fire(Ended.UPSTREAM_DIED)
        elif self._done is not None:
            stale = connection is not None and connection.stale
            self._done.errback(_Stale() if stale else UpstreamFailed(reason))

    def drained(self) -> None:
        """The upstream has taken more of what the client sends it."""
        if self._tunnel is not None:
            self._tunnel.upstream_drained()

    # The client's side.

    def _bare_data(self, data: bytes) -> None:
        self._delivery.bare_data(data)
        if self._observer is not None:
            self._observer.data(data)

    def _client_drained(self) -> None:
        connection = self._connection
        if connection is None or self._exchange.buffered > self._high_water // 2:
            return
        try:
            self._delivery.catch_up()
        except Malformed as error:
            connection.fail(f"malformed response: {error.reason}")
            return
        if not self._delivery.behind:
            connection.resume_reading()
            if self._held_up:
                self._held_up = False
                self._exchange.go_on()

    def _upgrade(self) -> None:
        assert self._connection is not None
        self._tunnel = ClientToUpstream(self._exchange, self._connection)
        self._exchange.take_over(self._tunnel)

    # Ends.

    def _count(self, size: int) -> None:
        self._size = size
        self._delivery.count(size)

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
        if self._tunnel is not None:
            connection.close()
        elif self._drain and self._exchange.gone:
            return
        else:
            connection.abort()
        self._connection = self._exchange.on_drain = None
        self._done = None
        if self._head is not None:  # otherwise whoever cancelled may still say why
            self._delivery.abort()
            done.callback(Ended.CLIENT_LEFT)
