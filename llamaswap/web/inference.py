"""One inference call, from the door to the guest book.

The hallway is straight: read the call, find what its model's name means, make
the request ready, wait for the box, relay the answer, leave a row.  Whatever
happens after the name was read, one row is left.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime

from llamaswap.activity.record import ABORTED
from llamaswap.calls.call import Call, read_call
from llamaswap.calls.resolution import Directory, Local
from llamaswap.calls.rewriting import rewrite
from llamaswap.errors import CodedRequest, NoModel, Refusal, UnknownModel
from llamaswap.http1.body import Body
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.heads import RequestHead
from llamaswap.http1.relay import Ended, Outcome
from llamaswap.leases import Abandoned
from llamaswap.proxying.local import text
from llamaswap.proxying.peer import PeerUpstream
from llamaswap.proxying.reframing import reframed
from llamaswap.web.answers import refuse
from llamaswap.web.decision import tell
from llamaswap.web.guestbook import GuestBook
from llamaswap.web.orders import Order, Parcel
from llamaswap.web.standing import Standings
from llamaswap.web.turns import Cancelled, Told, Turn, Turns
from llamaswap.web.visit import Visit

# Looking a member up in its class takes as long as a call.
_COMPLETE: Final = Ended.COMPLETE


class Inference:
    """Serves calls that need a model.

    Args:
        turns: takes those for local models through the queue.
        standings: knows who asks.
        clock: measures; monotonic in the daemon.
    """

    def __init__(
        self,
        *,
        directory: Directory,
        turns: Turns,
        peers: PeerUpstream,
        guests: GuestBook,
        standings: Standings,
        clock: IReactorTime,
    ) -> None:
        self._directory = directory
        self._turns = turns
        self._peers = peers
        self._guests = guests
        self._standings = standings
        self._clock = clock

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
            read=True,
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
                and await self._turns.past_the_queue(exchange, order, destination.model)
            ):
                return
            visit = self._guests.welcome(exchange, order, cancel=exchange.cancel)
            try:
                outcome = await self._forwarding(exchange, order, visit)
                visit.answered(outcome.head, "" if outcome.ended is _COMPLETE else _ending(outcome, exchange))
            except Refusal as refusal:
                if not isinstance(refusal, Told):
                    self._tell_decision(exchange, visit)
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

    def _tell_decision(self, exchange: Exchange, visit: Visit) -> None:
        """Have an error of ours say what was decided, if it comes after that."""
        if visit.verdict is not None:
            tell(exchange, visit.verdict, visit.load(self._clock.seconds()))

    def _forwarding(self, exchange: Exchange, order: Order, visit: Visit) -> Awaitable[Outcome]:
        """Make the request ready; what is returned sends it when its turn has come."""
        standing = self._standings.of(exchange.head)
        visit.caller = standing.name
        parcel = order.pack()
        visit.sent((parcel.body.decoded,) if parcel.body.size else ())
        destination = order.destination
        if destination is None:
            raise UnknownModel
        if isinstance(destination, Local):
            model = destination.model
            return self._turns.take(
                Turn(
                    exchange=exchange, order=order, model=model, parcel=parcel, visit=visit, standing=standing
                )
            )
        return self._peers.forward(
            exchange, destination.peer, parcel.target, parcel.body, observer=visit.witness, metered=order.row
        )


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
    if outcome.ended is Ended.UPSTREAM_DIED:
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
