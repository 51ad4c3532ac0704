"""One inference call, from the door to the guest book.

The hallway is straight: read the call, find what its model's name means, make
the request ready, wait for the box, relay the answer, leave a row.  Whatever
happens after the name was read, one row is left.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from random import Random

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from llamaswap.activity.record import ABORTED
from llamaswap.calls.call import read_call
from llamaswap.calls.priority import HEADER, parse_priority
from llamaswap.calls.resolution import Destination, Directory, Local, Remote
from llamaswap.calls.rewriting import rewrite
from llamaswap.calls.selectors import Reservation
from llamaswap.config.model import ModelConfig
from llamaswap.dispatch import Dispatcher
from llamaswap.errors import Refusal, Rendered, UnknownModel, UpstreamUnreachable
from llamaswap.http1.body import Body
from llamaswap.http1.client import UpstreamFailed
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.relay import Ended, Outcome
from llamaswap.http1.stream import ResponseStream
from llamaswap.leases import Abandoned
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

_ENDINGS = {
    Ended.COMPLETE: "",
    Ended.UPSTREAM_DIED: "the upstream died in the middle of its response",
    Ended.CLIENT_LEFT: "the client left in the middle of the response",
}
_CANCELLED = "cancelled by its id in the middle of the response"


class Cancelled(Refusal):
    """Somebody ended the request by its id."""

    status = 503

    def __init__(self) -> None:
        super().__init__("the request was cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """What shall be sent upstream."""

    target: bytes  # path and query, escaped
    body: Body


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
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
    reservation: Reservation = field(default_factory=Reservation)  # at its target; `serve` gives it back


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

    async def infer(self, exchange: Exchange, *, cut: bytes = b"", looks_only: bool = False) -> None:
        """Serve a call whose model is named in its body or query.

        Args:
            cut: a prefix of the path that the upstream does not see.
            looks_only: it may use a resident model past the queue.

        Raises:
            NoModel: nothing names a model, or a pin switches the name off; no row is left.
            NoTarget: a selector has no target left; no row is left.
        """
        head = exchange.head
        body = await exchange.body()
        kind = text(head.get(b"content-type"))
        call = read_call(head.method, head.query, kind, body.decoded)
        query = b"" if head.query is None else b"?" + head.query
        target = head.path.removeprefix(cut) + query
        resolved = self._directory.resolve(call.model)

        def pack() -> Parcel:
            outbound = rewrite(head.method, target, kind, body.decoded, call, resolved)
            return Parcel(target=outbound.target, body=reframed(body, outbound.body))

        destination = resolved.destination
        await self.serve(
            exchange,
            Order(
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
            ),
        )

    async def serve(self, exchange: Exchange, order: Order) -> None:
        """Wait for the model, relay the exchange, leave a row."""
        with order.reservation:
            if not await self._past_the_queue(exchange, order):
                await self._receive(exchange, order)

    async def _receive(self, exchange: Exchange, order: Order) -> None:
        work: Deferred[None]
        visit = self._guests.welcome(exchange, order, cancel=lambda: work.cancel())
        work = Deferred.fromCoroutine(self._attend(exchange, order, visit))
        try:
            await work
        finally:
            visit.over()

    async def _attend(self, exchange: Exchange, order: Order, visit: Visit) -> None:
        try:
            await self._answer(exchange, order, visit)
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

    def _end_cancelled(self, exchange: Exchange) -> None:
        """Answer a request that somebody else ended; one whose client left ends by itself."""
        if exchange.gone:
            raise CancelledError
        refuse(exchange, Cancelled())

    async def _answer(self, exchange: Exchange, order: Order, visit: Visit) -> None:
        match order.destination:
            case None:
                self._pack(order, visit)
                raise UnknownModel
            case Remote(peer, _):
                parcel = self._pack(order, visit)
                outcome = await self._peers.forward(
                    exchange, peer, parcel.target, parcel.body, observer=visit.witness, metered=order.row
                )
                self._note(outcome, exchange, visit)
            case Local(model):
                await self._answer_locally(exchange, order, model, visit)

    async def _answer_locally(
        self, exchange: Exchange, order: Order, model: ModelConfig, visit: Visit
    ) -> None:
        parcel = self._pack(order, visit)
        priority = parse_priority(exchange.head.get(HEADER))
        if not priority.parseable:
            self._metrics.priority_unparseable()
        story = self._story(exchange, order, model)

        def dispatched(verdict: Verdict) -> None:
            visit.dispatched(verdict, self._clock.seconds())
            if story is not None:
                story.dispatched()

        with story or nullcontext():
            try:
                async with self._dispatcher.lease(
                    model.id,
                    priority.value,
                    looks_only=order.looks_only,
                    told=dispatched,
                    queued=story.queued if story is not None else None,
                ) as lease:
                    visit.leased(lease)
                    into = story.loaded() if story is not None else None
                    outcome = await self._relay(exchange, model, lease.server, parcel, order, visit, into)
            except Refusal as refusal:
                if story is None or not story.failed(refusal):
                    raise
                told = Rendered(refusal.status, ((b"Content-Type", b"text/event-stream"),), b"")
                visit.refused(refusal, told)
                raise _Told(refusal.message) from refusal
        self._note(outcome, exchange, visit)

    async def _relay(
        self,
        exchange: Exchange,
        model: ModelConfig,
        server: ModelServer,
        parcel: Parcel,
        order: Order,
        visit: Visit,
        into: ResponseStream | None,
    ) -> Outcome:
        try:
            outcome = await self._upstream.forward(
                exchange,
                server.address,
                model,
                parcel.target,
                parcel.body,
                observer=visit.witness,
                metered=order.row,
                into=into,
            )
        except UpstreamFailed as failed:
            self._dispatcher.doubt(model.id)
            why = f"[{model.id}] upstream gave no answer: {failed.reason}"
            raise UpstreamUnreachable(why) from failed
        if outcome.ended is Ended.UPSTREAM_DIED:
            self._dispatcher.doubt(model.id)
            self._log.error(
                "inference.upstream_died model={model} body_bytes={body_bytes}",
                model=model.id,
                body_bytes=outcome.body_bytes,
            )
        return outcome

    async def _past_the_queue(self, exchange: Exchange, order: Order) -> bool:
        """Relay a WebSocket that its model ignores: no ticket, no row, no sign of life.

        Raises:
            NotLoaded: the model is not ready, and such a request can't start it.
        """
        if not isinstance(order.destination, Local):
            return False
        model = order.destination.model
        if not model.ignore_websockets:
            return False
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

    def _pack(self, order: Order, visit: Visit) -> Parcel:
        parcel = order.pack()
        visit.sent((parcel.body.decoded,) if parcel.body.size else ())
        return parcel

    def _note(self, outcome: Outcome, exchange: Exchange, visit: Visit) -> None:
        cancelled = outcome.ended is Ended.CLIENT_LEFT and not exchange.gone
        visit.answered(outcome.head, _CANCELLED if cancelled else _ENDINGS[outcome.ended])

    def _story(self, exchange: Exchange, order: Order, model: ModelConfig) -> LoadingStory | None:
        """Return what tells the client of the load, for those who shall be told."""
        if not tells_of_loading(model, order.target, stream=order.stream):
            return None
        return LoadingStory(
            exchange,
            model.id,
            self._clock,
            self._dice,
            shown=True,
            is_ready=lambda: self._ready_server(model.id) is not None,
        )

    def _ready_server(self, model: str) -> ModelServer | None:
        server = self._server_of(model)
        return server if server is not None and server.state is State.READY else None


class _Told(Refusal):
    """A refusal that the client has had already, inside the answer that told it of the load."""


def _who(exchange: Exchange) -> str:
    return "abandoned by its client" if exchange.gone else "cancelled by its id"
