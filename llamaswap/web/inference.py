"""One inference call, from the door to the guest book.

The hallway is straight: read the call, find its model, wait for the box, relay
the answer, leave a row.  Whatever happens after the model's name was read, one
row is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from llamaswap.activity.journal import Journal
from llamaswap.activity.record import ABORTED
from llamaswap.calls.call import read_call
from llamaswap.calls.catalog import Catalog
from llamaswap.calls.priority import HEADER, parse_priority
from llamaswap.config.model import ModelConfig
from llamaswap.dispatch import Abandoned, Dispatcher, Lease
from llamaswap.errors import Refusal, UnknownModel, UpstreamUnreachable
from llamaswap.http1.body import Body
from llamaswap.http1.client import UpstreamFailed
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.relay import Ended, Outcome
from llamaswap.proxying.local import LocalUpstream, text
from llamaswap.scheduling.vocabulary import band_of
from llamaswap.telemetry.metrics import Metrics
from llamaswap.web.answers import refuse
from llamaswap.web.visit import Visit

_ENDINGS = {
    Ended.COMPLETE: "",
    Ended.UPSTREAM_DIED: "the upstream died in the middle of its response",
    Ended.CLIENT_LEFT: "the client left in the middle of the response",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What shall be sent upstream for one exchange."""

    model: ModelConfig
    target: bytes  # path and query, escaped
    body: Body
    looks_only: bool
    row: bool  # whether it belongs into the activity log


class Inference:
    """Serves calls that need a model.

    Args:
        clock: measures; monotonic in the daemon.
        wall: stamps rows, unix seconds.
    """

    _log = Logger()

    def __init__(
        self,
        *,
        catalog: Catalog,
        dispatcher: Dispatcher,
        upstream: LocalUpstream,
        journal: Journal,
        metrics: Metrics,
        clock: IReactorTime,
        wall: Callable[[], float],
    ) -> None:
        self._catalog = catalog
        self._dispatcher = dispatcher
        self._upstream = upstream
        self._journal = journal
        self._metrics = metrics
        self._clock = clock
        self._wall = wall

    async def infer(self, exchange: Exchange, *, cut: bytes = b"", looks_only: bool = False) -> None:
        """Serve a call whose model is named in its body or query.

        Args:
            cut: a prefix of the path that the upstream does not see.
            looks_only: it may use a resident model past the queue.

        Raises:
            NoModel: nothing names a model; no row is left.
        """
        head = exchange.head
        body = await exchange.body()
        call = read_call(head.method, head.query, text(head.get(b"content-type")), body.decoded)
        model = self._catalog.find(call.model)
        row = head.method == b"POST"
        query = b"" if head.query is None else b"?" + head.query
        target = head.path.removeprefix(cut) + query
        if model is None:
            self._turn_away(exchange, call.model, target, row=row)
        else:
            await self.serve(
                exchange, Order(model=model, target=target, body=body, looks_only=looks_only, row=row)
            )

    async def serve(self, exchange: Exchange, order: Order) -> None:
        """Wait for the model, relay the exchange, leave a row."""
        visit = self._visit(exchange, order.model.id, order.target)
        priority = parse_priority(exchange.head.get(HEADER))
        if not priority.parseable:
            self._metrics.priority_unparseable()
        try:
            async with self._dispatcher.lease(
                order.model.id,
                priority.value,
                looks_only=order.looks_only,
                told=lambda verdict: visit.dispatched(verdict, self._clock.seconds()),
            ) as lease:
                visit.leased(lease)
                await self._relay(exchange, order, lease, visit)
        except Refusal as refusal:
            visit.refused(refusal, refuse(exchange, refusal))
        except Abandoned as gone:
            visit.abandoned(gone, band_of(priority.value))
            raise CancelledError from gone
        except CancelledError:
            visit.failed(ABORTED, "the client left before the upstream answered")
            raise
        finally:
            self._leave(visit, row=order.row)

    async def _relay(self, exchange: Exchange, order: Order, lease: Lease, visit: Visit) -> None:
        meter = visit.meter if order.row else None
        try:
            outcome = await self._upstream.forward(
                exchange, lease.server.address, order.model, order.target, order.body, meter
            )
        except UpstreamFailed as failed:
            self._dispatcher.doubt(order.model.id)
            raise UpstreamUnreachable(
                f"[{order.model.id}] upstream gave no answer: {failed.reason}"
            ) from failed
        visit.answered(outcome.head, _ENDINGS[outcome.ended])
        self._warn_of(outcome, order.model.id)

    def _warn_of(self, outcome: Outcome, model: str) -> None:
        if outcome.ended is Ended.UPSTREAM_DIED:
            self._dispatcher.doubt(model)
            self._log.error(
                "inference.upstream_died model={model} body_bytes={body_bytes}",
                model=model,
                body_bytes=outcome.body_bytes,
            )

    def _turn_away(self, exchange: Exchange, name: str, target: bytes, *, row: bool) -> None:
        visit = self._visit(exchange, name, target)
        refusal = UnknownModel()
        visit.refused(refusal, refuse(exchange, refusal))
        self._leave(visit, row=row)

    def _visit(self, exchange: Exchange, model: str, target: bytes) -> Visit:
        path = target.partition(b"?")[0].decode("utf-8", "replace")
        return Visit(model=model, req_path=path, began=exchange.received)

    def _leave(self, visit: Visit, *, row: bool) -> None:
        activity = visit.activity(lasted=self._clock.seconds() - visit.began, ended=self._wall())
        self._metrics.answered(activity.model, activity.resp_status_code)
        self._log.info(
            "inference.ended model={model} path={path} status={status} ms={ms} error={error}",
            model=activity.model,
            path=activity.req_path,
            status=activity.resp_status_code,
            ms=activity.duration_ms,
            error=activity.error_msg or "-",
        )
        if row:
            self._journal.write(activity)
