"""A call to a model of ours: wait for the box, keep the client company, relay the answer.

Knows how a call gets its turn and what it does with it.  What it leaves
behind, and how it is refused, is `llamaswap.web.inference`'s part.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

import msgspec
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from llamaswap.config.model import KeepAliveConfig, ModelConfig
from llamaswap.dispatch import Dispatcher
from llamaswap.errors import Refusal, UpstreamUnreachable
from llamaswap.http1.client import UpstreamFailed
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.relay import Ended, Outcome
from llamaswap.leases import Abandoned, Lease
from llamaswap.metering.meter import FAILURES
from llamaswap.processes.lifecycle import State
from llamaswap.processes.server import ModelServer
from llamaswap.proxying.local import LocalUpstream
from llamaswap.scheduling.vocabulary import Verdict
from llamaswap.telemetry.metrics import Metrics
from llamaswap.web.answers import refuse
from llamaswap.web.company import Company
from llamaswap.web.decision import tell
from llamaswap.web.early import EVENTS, EarlyAnswer
from llamaswap.web.keepalive import rhythm_of
from llamaswap.web.loading import LoadingStory, tells_of_loading
from llamaswap.web.orders import Order, Parcel
from llamaswap.web.standing import Standing, Standings
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


class Told(Refusal):
    """A refusal that the client has had already, inside the answer that kept it company."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One call, ready to take its turn."""

    exchange: Exchange
    order: Order
    model: ModelConfig
    parcel: Parcel
    visit: Visit
    standing: Standing


class Turns:
    """Takes calls through the queue, and to their model.

    Args:
        server_of: the server of a local model, by id; None when a reload has taken the model away.
        standings: knows what each request may ask for.
        keep_alive: how those who wait are kept company.
        clock: measures; monotonic in the daemon.
        dice: chooses what a waiting client is told.
    """

    _log = Logger()

    def __init__(
        self,
        *,
        dispatcher: Dispatcher,
        server_of: Callable[[str], ModelServer | None],
        upstream: LocalUpstream,
        metrics: Metrics,
        standings: Standings,
        keep_alive: KeepAliveConfig,
        clock: IReactorTime,
        dice: Random,
    ) -> None:
        self._dispatcher = dispatcher
        self._server_of = server_of
        self._upstream = upstream
        self._metrics = metrics
        self._standings = standings
        self._keep_alive = keep_alive if keep_alive.stream or keep_alive.json else None
        self._clock = clock
        self._dice = dice

    def take(self, turn: Turn) -> Awaitable[Outcome]:
        """Return what waits for the call's turn and uses it.

        Raises:
            Told: a refusal of which the client knows.
            Refusal: any other.
            Abandoned: it was ended before it held a lease.
            CancelledError: it was ended before the upstream answered.
        """
        if turn.order.stream or self._keep_alive is not None:
            company = self._company(turn.exchange, turn.order, turn.model)
            if company is not None:
                return self._in_company(turn, company)
        return self._in_turn(turn, None)

    async def past_the_queue(self, exchange: Exchange, order: Order, model: ModelConfig) -> bool:
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

    def _company(self, exchange: Exchange, order: Order, model: ModelConfig) -> Company | None:
        target, stream, rhythm, story = order.target, order.stream, None, None
        if self._keep_alive is not None and order.read:
            rhythm = rhythm_of(self._keep_alive, exchange.head, target, stream=stream)
        tells = tells_of_loading(model, target, stream=stream)
        if not tells and rhythm is None:
            return None
        early = EarlyAnswer(exchange, EVENTS if rhythm is None else rhythm.form, self._clock)
        if tells:
            story = LoadingStory(
                early,
                model.id,
                self._clock,
                self._dice,
                is_ready=lambda: self._ready_server(model.id) is not None,
            )
        return Company(early, model.id, self._clock, story=story, rhythm=rhythm)

    async def _in_company(self, turn: Turn, company: Company) -> Outcome:
        with company:
            try:
                return await self._in_turn(turn, company)
            except Refusal as refusal:
                told = company.refuse(refusal)
                if told is None:
                    raise
                turn.visit.refused(refusal, told)
                raise Told(refusal.message) from refusal
            except (CancelledError, Abandoned):
                if not turn.exchange.gone:
                    company.cancelled(Cancelled())
                raise

    async def _in_turn(self, turn: Turn, company: Company | None) -> Outcome:
        """Wait for the box, and give it back as soon as the upstream is done."""
        model, visit, standing = turn.model, turn.visit, turn.standing
        if standing.odd_priority or standing.odd_max_wait:
            self._note_oddities(standing)
        priority = standing.priority
        if priority is None:
            priority = self._standings.priority(standing, model.id)

        def dispatched(verdict: Verdict, now: float) -> None:
            visit.dispatched(verdict, now)
            if company is not None:
                company.dispatched()

        async with self._dispatcher.lease(
            model.id,
            priority,
            looks_only=turn.order.looks_only,
            max_wait=standing.max_wait,
            overrides=standing.overrides,
            told=visit.dispatched if company is None else dispatched,
            queued=None if company is None else company.queued,
        ) as lease:
            visit.leased(lease)
            if lease.verdict is not None:
                tell(turn.exchange, lease.verdict, lease.load)
            if company is not None:
                company.leased()
            outcome = await self._relay(turn, lease, company)
            if outcome.ended is not _COMPLETE or outcome.head.status >= FAILURES:
                self._dispatcher.cut_short(lease)
            if outcome.ended is _DIED:
                self._note_death(model.id, outcome)
            return outcome

    async def _relay(self, turn: Turn, lease: Lease, company: Company | None) -> Outcome:
        """Relay under a lease; a server that turns out to have died meanwhile is started once more."""
        server = lease.server
        for again in (True, False):
            try:
                return await self._upstream.forward(
                    turn.exchange,
                    server.address,
                    server.model,
                    turn.parcel.target,
                    turn.parcel.body,
                    observer=turn.visit.witness,
                    metered=turn.order.row,
                    into=None if company is None else company.answered,
                )
            except UpstreamFailed as failed:
                if failed.sent or not again or not await self._dispatcher.revive(lease):
                    self._dispatcher.doubt(server.model.id)
                    why = f"[{server.model.id}] upstream gave no answer: {failed.reason}"
                    raise UpstreamUnreachable(why) from failed
        raise AssertionError("unreachable")

    def _note_oddities(self, standing: Standing) -> None:
        if standing.odd_priority:
            self._metrics.priority_unparseable()
        if standing.odd_max_wait:
            self._log.debug("turns.max_wait_ignored value={value!r}", value=standing.odd_max_wait[:64])

    def _note_death(self, model: str, outcome: Outcome) -> None:
        self._dispatcher.doubt(model)
        self._log.error(
            "inference.upstream_died model={model} body_bytes={body_bytes}",
            model=model,
            body_bytes=outcome.body_bytes,
        )

    def _ready_server(self, model: str) -> ModelServer | None:
        server = self._server_of(model)
        return server if server is not None and server.state is State.READY else None
