"""One inference call, from the door to the guest book.

The hallway is straight: read the call, find what its model's name means, make
the request ready, wait for the box, relay the answer, leave a row.  Whatever
happens after the name was read, one row is left.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

import msgspec
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from llamaswap.activity.record import ABORTED
from llamaswap.calls.call import Call, read_call
from llamaswap.calls.priority import HEADER, parse_priority
from llamaswap.calls.resolution import Destination, Directory, Local
from llamaswap.calls.rewriting import rewrite
from llamaswap.calls.selectors import Reservation
from llamaswap.config.model import ModelConfig
from llamaswap.dispatch import Dispatcher
from llamaswap.errors import CodedRequest, NoModel, Refusal, Rendered, UnknownModel, UpstreamUnreachable
from llamaswap.http1.body import Body
from llamaswap.http1.client import UpstreamFailed
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.heads import RequestHead
from llamaswap.http1.relay import Ended, Outcome
from llamaswap.http1.stream import ResponseStream
from llamaswap.leases import Abandoned, Lease
from llamaswap.processes.lifecycle import State
from llamaswap.processes.server import ModelServer
from llamaswap.proxying.local import LocalUpstream, text
from llamaswap.proxying.peer import PeerUpstream
from llamaswap.proxying.reframing import reframed
from llamaswap.scheduling.vocabulary import Verdict
from llamaswap.telemetry.metrics import Metrics
from llamaswap.web.answers import refuse
from llamaswap.web.guestbook import GuestBook
from llamaswap.web.loading import LoadingStory, tells_of_loading
from llamaswap.web.visit import Visit
from llamaswap.web.websockets import goes_past_the_queue

# Looking a member up in its class takes as long as a call.
_COMPLETE: Final = Ended.COMPLETE
_DIED: Final = Ended.UPSTREAM_DIED


class Cancelled(Refusal):
    """Somebody ended the request by its id."""

    status = 503

    def __init__(self) -> None:
        super().__init__("the request was cancelled")


class Parcel(msgspec.Struct, frozen=True):
    """What shall be sent upstream."""

    target: bytes  # path and query, escaped
    body: Body


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange that wants a model."""

    destination: Destination | None  # None: nothing has that name
    name: str  # of the model, for the row: the real id, or what was asked for
    target: bytes  # path and query as asked for, without what the upstream does not see
    pack: Callable[[], Parcel]  # makes the request ready; raises Refusal
    looks_only: bool = False
    row: bool = False  # whether it belongs into the activity log
    listed: bool = False  # whether it belongs into the list of requests in flight
    stream: bool = False  # a streamed answer was asked for
    selector: str = ""
    reservation: Reservation = msgspec.field(default_factory=Reservation)  # `serve` gives it back


class Inference:
    """Serves calls that need a model.

    Args:
        server_of: the server of a local model, by id; None when a reload has taken the model away.
        clock: measures; monotonic in the daemon.
        dice: chooses what a waiting client is told.
    """

    _log = Logger()

    def __init__(
        self,
        *,
        directory: Directory,
        dispatcher: Dispatcher,
        server_of: Callable[[str], ModelServer | None],
        upstream: LocalUpstream,
        peers: PeerUpstream,
        guests: GuestBook,
        metrics: Metrics,
        clock: IReactorTime,
        dice: Random,
    ) -> None:
        self._directory = directory
        self._dispatcher = dispatcher
        self._server_of = server_of
        self._upstream = upstream
        self._peers = peers
        self._guests = guests
        self._metrics = metrics
        self._clock = clock
        self._dice = dice

    async def order(self, exchange: Exchange, *, cut: bytes = b"", looks_only: bool = False) -> Order:
        """Read a call whose model is named in its body or query; what is returned has to be served.

        Args:
            cut: a prefix of the path that the upstream does not see.
            looks_only: it may use a resident model past the queue.

        Raises:
            NoModel: nothing names a model, or a pin switches the name off; no row is left.
            CodedRequest: as NoModel, of a body that is compressed.
            NoTarget: a selector has no target left; no row is left.
        """
        head = exchange.head
        body = exchange.body_at_hand() or await exchange.body()
        kind = text(head.get(b"content-type"))
        call = _read(head, kind, body)
        target = _without(cut, head)
        resolved = self._directory.resolve(call.model)
        destination = resolved.destination

        def pack() -> Parcel:
            outbound = rewrite(head.method, target, kind, body.decoded, call, resolved)
            return Parcel(outbound.target, reframed(body, outbound.body))

        return Order(
            destination=destination,
            name=destination.model.id if isinstance(destination, Local) else resolved.requested,
            target=target,
            pack=pack,
            looks_only=looks_only,
            row=head.method == b"POST",
            listed=True,
            stream=call.stream,
            selector=resolved.selector,
            reservation=resolved.reservation,
        )

    async def serve(self, exchange: Exchange, order: Order) -> None:
        """Wait for the model, relay the exchange, leave a row."""
        destination = order.destination
        try:
            if (
                isinstance(destination, Local)
                and destination.model.ignore_websockets
                and await self._past_the_queue(exchange, order, destination.model)
            ):
                return
            visit = self._guests.welcome(exchange, order, cancel=exchange.cancel)
            try:
                outcome = await self._forwarding(exchange, order, visit)
                visit.answered(outcome.head, "" if outcome.ended is _COMPLETE else _ending(outcome, exchange))
            except Refusal as refusal:
                if not isinstance(refusal, _Told):
                    visit.refused(refusal, refuse(exchange, refusal))
            except CancelledError:
                visit.failed(ABORTED, f"{_who(exchange)} before the upstream answered")
                self._end_cancelled(exchange)
            except Abandoned as gone:
                visit.abandoned(gone, _who(exchange))
                self._end_cancelled(exchange)
            finally:
                self._guests.farewell(visit)
                visit.over()
        finally:
            order.reservation.release()

    def _end_cancelled(self, exchange: Exchange) -> None:
        """Answer a request that somebody else ended; one whose client left ends by itself."""
        if exchange.gone:
            raise CancelledError
        refuse(exchange, Cancelled())

    def _forwarding(self, exchange: Exchange, order: Order, visit: Visit) -> Awaitable[Outcome]:
        """Make the request ready; what is returned sends it when its turn has come."""
        parcel = order.pack()
        visit.sent((parcel.body.decoded,) if parcel.body.size else ())
        destination = order.destination
        if destination is None:
            raise UnknownModel
        if isinstance(destination, Local):
            model = destination.model
            if tells_of_loading(model, order.target, stream=order.stream):
                return self._in_turn_with_a_story(exchange, order, model, parcel, visit)
            return self._in_turn(exchange, order, model, parcel, visit, None)
        return self._peers.forward(
            exchange, destination.peer, parcel.target, parcel.body, observer=visit.witness, metered=order.row
        )

    async def _in_turn_with_a_story(
        self, exchange: Exchange, order: Order, model: ModelConfig, parcel: Parcel, visit: Visit
    ) -> Outcome:
        story = LoadingStory(
            exchange,
            model.id,
            self._clock,
            self._dice,
            shown=True,
            is_ready=lambda: self._ready_server(model.id) is not None,
        )
        with story:
            try:
                return await self._in_turn(exchange, order, model, parcel, visit, story)
            except Refusal as refusal:
                if not story.failed(refusal):
                    raise
                told = Rendered(refusal.status, ((b"Content-Type", b"text/event-stream"),), b"")
                visit.refused(refusal, told)
                raise _Told(refusal.message) from refusal

    async def _in_turn(
        self,
        exchange: Exchange,
        order: Order,
        model: ModelConfig,
        parcel: Parcel,
        visit: Visit,
        story: LoadingStory | None,
    ) -> Outcome:
        """Wait for the box, and give it back as soon as the upstream is done."""
        priority = parse_priority(exchange.head.get(HEADER))
        if not priority.parseable:
            self._metrics.priority_unparseable()

        def dispatched(verdict: Verdict, now: float) -> None:
            visit.dispatched(verdict, now)
            if story is not None:
                story.dispatched()

        async with self._dispatcher.lease(
            model.id,
            priority.value,
            looks_only=order.looks_only,
            told=visit.dispatched if story is None else dispatched,
            queued=None if story is None else story.queued,
        ) as lease:
            visit.leased(lease)
            into = None if story is None else story.loaded()
            outcome = await self._relay(exchange, order, lease, parcel, visit, into)
            if outcome.ended is _DIED:
                self._note_death(model.id, outcome)
            return outcome

    async def _relay(
        self,
        exchange: Exchange,
        order: Order,
        lease: Lease,
        parcel: Parcel,
        visit: Visit,
        into: ResponseStream | None,
    ) -> Outcome:
        """Relay under a lease; a server that turns out to have died meanwhile is started once more."""
        server = lease.server
        for again in (True, False):
            try:
                return await self._upstream.forward(
                    exchange,
                    server.address,
                    server.model,
                    parcel.target,
                    parcel.body,
                    observer=visit.witness,
                    metered=order.row,
                    into=into,
                )
            except UpstreamFailed as failed:
                if failed.sent or not again or not await self._dispatcher.revive(lease):
                    self._dispatcher.doubt(server.model.id)
                    why = f"[{server.model.id}] upstream gave no answer: {failed.reason}"
                    raise UpstreamUnreachable(why) from failed
        raise AssertionError("unreachable")

    def _note_death(self, model: str, outcome: Outcome) -> None:
        self._dispatcher.doubt(model)
        self._log.error(
            "inference.upstream_died model={model} body_bytes={body_bytes}",
            model=model,
            body_bytes=outcome.body_bytes,
        )

    async def _past_the_queue(self, exchange: Exchange, order: Order, model: ModelConfig) -> bool:
        """Relay a WebSocket that its model ignores: no ticket, no row, no sign of life.

        Raises:
            NotLoaded: the model is not ready, and such a request can't start it.
        """
        server = self._ready_server(model.id)
        if not goes_past_the_queue(exchange.head.headers, model, ready=server is not None):
            return False
        assert server is not None
        order.reservation.release()
        parcel = order.pack()
        try:
            await self._upstream.forward(exchange, server.address, model, parcel.target, parcel.body)
        except UpstreamFailed as failed:
            refuse(exchange, UpstreamUnreachable(f"[{model.id}] upstream gave no answer: {failed.reason}"))
        return True

    def _ready_server(self, model: str) -> ModelServer | None:
        server = self._server_of(model)
        return server if server is not None and server.state is State.READY else None


class _Told(Refusal):
    """A refusal that the client has had already, inside the answer that told it of the load."""


def _read(head: RequestHead, kind: str, body: Body) -> Call:
    """Find the model and the wishes of a call.

    Raises:
        NoModel: nothing names a model.
        CodedRequest: what might is compressed.
    """
    try:
        return read_call(head.method, head.query, kind, body.decoded)
    except NoModel:
        coding = text(head.get(b"content-encoding")).strip()
        if coding.lower() in ("", "identity"):
            raise
        raise CodedRequest(coding) from None


def _ending(outcome: Outcome, exchange: Exchange) -> str:
    """Return how a response came to its end that is not complete."""
    if outcome.ended is _DIED:
        return "the upstream died in the middle of its response"
    if exchange.gone:
        return "the client left in the middle of the response"
    return "cancelled by its id in the middle of the response"


def _who(exchange: Exchange) -> str:
    return "abandoned by its client" if exchange.gone else "cancelled by its id"


def _without(cut: bytes, head: RequestHead) -> bytes:
    """Return path and query of a request, without the prefix that its upstream does not see."""
    if not cut and head.target[:1] == b"/":
        return head.target
    query = b"" if head.query is None else b"?" + head.query
    return head.path.removeprefix(cut) + query
