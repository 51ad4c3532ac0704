"""Tickets to Deferreds: who asks for a model, waits for its turn, holds a lease and gives it back.

Knows who comes and who leaves.  What the scheduler decides is done by `box`, and
what people ask about the queue, or tell it, is answered by `queueing`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from llamaswap.box import Box
from llamaswap.ceilings import Ceiling
from llamaswap.claims import Claim, Told, Waiter, Wish, no_one
from llamaswap.config.model import SerialSettings
from llamaswap.errors import QueueFull, ShuttingDown, UnknownModel, UnloadFailed
from llamaswap.leases import Abandoned, DispatchObserver, Lease, Queued, SwapReason
from llamaswap.loads import all_stopped
from llamaswap.processes.failures import ServerStuck
from llamaswap.processes.fleet import Fleet
from llamaswap.queueing import Queueing
from llamaswap.scheduling.estimates import Estimates
from llamaswap.scheduling.protocol import Scheduler
from llamaswap.scheduling.vocabulary import Decision, Facts, QueueView, Ticket


class Dispatcher:
    """Gives out leases in the scheduler's order.

    Args:
        scheduler: who goes next.
        fleet: the server of every local model, by id.
        clock: stamps arrivals and measures waits; monotonic in the daemon.
        observer: counts.
        ceiling: how many may wait, those whose model loads included; None = any number.
        estimates: learn how long jobs and loads take; they outlive a change of the scheduler.
        settings: of the serial scheduler; None: it is another one, which knows no limits of waiting.

    Attributes:
        queueing: answers what people ask about the queue, and does what they ask for.
    """

    _log = Logger()

    def __init__(
        self,
        scheduler: Scheduler,
        fleet: Fleet,
        clock: IReactorTime,
        observer: DispatchObserver,
        ceiling: Ceiling | None = None,
        estimates: Estimates | None = None,
        settings: SerialSettings | None = None,
    ) -> None:
        self._fleet = fleet
        self._known = frozenset(fleet)
        self._clock = clock
        self._observer = observer
        self._ceiling = ceiling or Ceiling("waiting", clock, lambda _name: None)
        self._numbers = 0
        self._box = box = Box(scheduler, fleet, clock, observer, estimates or Estimates(), settings)
        self._waiters = box.waiters
        self._post = box.post
        self.queueing = Queueing(box)

    def lease(
        self,
        model: str,
        priority: int,
        *,
        looks_only: bool = False,
        told: Told = no_one,
        queued: Queued | None = None,
        max_wait: float | None = None,
        overrides: bool = False,
        reason: SwapReason = "request",
    ) -> AbstractAsyncContextManager[Lease, None]:
        """Wait for the box, then hold it until the block ends.

        Args:
            model: a real model id.
            priority: the caller's.
            looks_only: the call reads a page or counts tokens; it may use a
                resident model past the queue, and is no job.
            told: called when the ticket is dispatched, before the load that it
                may need; never for a call that went past the queue.
            queued: called when the ticket was admitted and has to wait.
            max_wait: seconds until its dispatch that the caller puts up with; its band's
                limit counts, too.  Neither does under `fifo`.
            overrides: it may evict protected models.
            reason: why a load is begun that the ticket needs, for the counters.

        Raises:
            Refusal: the scheduler says no, the wait is or would be too long, the load failed,
                or the model is gone from the configuration.
            Abandoned: the caller was cancelled before it got its lease.
        """
        wish = Wish(
            model=model,
            priority=priority,
            looks_only=looks_only,
            told=told,
            queued=queued,
            max_wait=max_wait,
            overrides=overrides,
            reason=reason,
        )
        return Claim(self, wish)

    def pass_by(self, model: str) -> Lease | None:
        """Return a lease for a call that only looks, if it needs no ticket now.

        Raises:
            UnknownModel: as `lease`.
        """
        if model not in self._known:
            raise UnknownModel
        scheduler = self._box.scheduler
        if scheduler.bypass_when_resident and scheduler.resident(model, self._box.facts()):
            return Lease(server=self._fleet[model], verdict=None, load=0.0)
        return None

    def enter(self, wish: Wish) -> Waiter:
        """Queue a ticket; its waiter may have its answer already.

        Raises:
            UnknownModel: as `lease`.
        """
        if wish.model not in self._known:
            raise UnknownModel
        self._numbers += 1
        ticket = Ticket(
            number=self._numbers,
            model=wish.model,
            priority=wish.priority,
            arrived=self._clock.seconds(),
            overrides=wish.overrides,
            brief=wish.brief,
        )
        waiter = self._waiters[ticket.number] = Waiter(ticket, wish)
        self._post(lambda facts: self._box.scheduler.arrived(ticket, facts))
        if waiter.verdict is None and waiter.answer is None:
            self._must_wait(waiter)
        return waiter

    def abandon(self, waiter: Waiter) -> Abandoned:
        """Take back the ticket of a caller that was cancelled; returns what it raises."""
        ticket, now, scheduler = waiter.ticket, self._clock.seconds(), self._box.scheduler
        self._box.forget(ticket.number)
        self._box.bounds.eased()
        if waiter.verdict is None:
            self._observer.abandoned(scheduler.band(ticket))
        # Its priority may change before this event is taken up.
        self._post(lambda facts: self._box.scheduler.cancelled(waiter.ticket, facts))
        about = scheduler.waiting_metadata(ticket, now)
        return Abandoned(ticket, waiter.verdict, now - ticket.arrived, about)

    def give_back(self, ticket: Ticket, *, whole: bool) -> None:
        """The job is done: the box is free.  `whole`: nothing broke it off."""
        box = self._box
        box.bounds.eased()

        def released(facts: Facts) -> Sequence[Decision]:
            box.measures.ended(ticket.number, facts.now, whole=whole)
            return box.scheduler.released(ticket, facts)

        self._post(released)

    def cut_short(self, lease: Lease) -> None:
        """This job tells nothing about how long such jobs take: it failed, or its client left."""
        self._box.measures.cut_short(lease.number)

    async def unload(self, models: frozenset[str]) -> None:
        """Stop these models now, each with its own grace; returns when all are stopped.

        Raises:
            UnloadFailed: one does not end, not even by SIGKILL.
        """
        stops: list[Deferred[None]] = []
        begun: Deferred[None] = Deferred()

        def unloaded(_before: Facts) -> Sequence[Decision]:
            # As one event: whoever fails because of a stop must not be followed by the load of a model
            # that counts as unloaded a moment later.
            stops.extend(self._box.loads.stop(model, None) for model in sorted(models))
            begun.callback(None)
            return self._box.scheduler.unloaded(models, self._box.facts())

        self._post(unloaded)
        await begun
        try:
            await all_stopped(stops)
        except ServerStuck as stuck:
            raise UnloadFailed(str(stuck)) from stuck

    def close(self) -> None:
        """Refuse everybody who waits; whoever holds a lease keeps it."""
        self._post(self._box.scheduler.closing)

    def when_idle(self) -> Deferred[None]:
        """Return a Deferred that fires when no lease is held and no dispatched ticket loads."""
        return self._box.when_idle()

    def suspend(self, kept: Collection[str]) -> None:
        """Let all loads rest, and dispatch nobody: whoever waits waits for what `reconfigure` brings.

        Args:
            kept: the models that there will be then.

        Nobody may ask for any other model from now on, though it may still serve.
        """
        self._known = frozenset(kept)
        self._box.suspend()

    def reconfigure(self, scheduler: Scheduler, settings: SerialSettings | None = None) -> None:
        """Let another scheduler take over, once the fleet is another, too; every ticket keeps its place.

        Args:
            settings: as for the dispatcher itself; whoever waits already keeps his deadline.
        """
        self._box.reconfigure(scheduler, settings)

    def doubt(self, model: str) -> None:
        """A connection to this model's server broke: nobody else gets it before we know whether it ended."""
        self._box.loads.doubt(model)

    async def revive(self, lease: Lease) -> bool:
        """Find out, after a connection to a leased server was refused, whether another one is worth trying.

        Raises:
            LoadRefused: it had died, and could not be started again.
        """
        return await self._box.loads.revive(lease)

    def server_changed(self, model: str) -> None:
        """This model's server has come into another state."""
        self._box.loads.server_changed(model)

    def abandon_loads(self) -> None:
        """Forget every load under way; its waiters stay with whoever holds them."""
        self._box.loads.abandon()

    def refuse_the_rest(self) -> None:
        """Refuse whoever still has no lease, dispatched or not: the daemon ends."""
        for number in tuple(self._waiters):
            waiter = self._box.forget(number)
            if waiter is not None:  # one may take another along
                waiter.end(ShuttingDown())

    def wanted(self, model: str) -> bool:
        """Return whether a ticket for this model may go, loads or runs; one of a paused band may not."""
        return self._box.scheduler.wanted(model)

    def tell(self, changed: Callable[[], None]) -> None:
        """Have this called, and nobody else, whenever the queue or the jobs may have changed."""
        self._box.changed = changed

    def view(self) -> QueueView:
        """Return the scheduler's snapshot."""
        return self._box.scheduler.view(self._clock.seconds())

    def _must_wait(self, waiter: Waiter) -> None:
        """See to a newcomer that was not dispatched at once: it may be turned away, or told so.

        Each is an event of its own: what the arrival itself leads to comes first.
        """
        wish = waiter.wish
        if len(self._waiters) > self._ceiling.most:
            self._post(partial(self._turn_away, waiter))
        if self._box.serial and self.queueing.cares(waiter):
            self._post(partial(self._admit, waiter))
        if wish.queued is not None:  # after the refusals: it may begin an answer
            self._post(partial(self._tell_queued, waiter, wish.queued))

    def _turn_away(self, waiter: Waiter, facts: Facts) -> Sequence[Decision]:
        """Refuse a newcomer that would have to wait; who came before keeps his place, urgent or not."""
        if not self._box.waits(waiter):
            return ()
        self._ceiling.reached()
        return self._box.refuse(waiter, QueueFull(), facts)

    def _admit(self, waiter: Waiter, facts: Facts) -> Sequence[Decision]:
        """Refuse a newcomer whose band is full or who would wait too long, else watch how long he waits."""
        if not self._box.waits(waiter):
            return ()
        refusal = self.queueing.admit(waiter, facts)
        return () if refusal is None else self._box.refuse(waiter, refusal, facts)

    def _tell_queued(self, waiter: Waiter, queued: Queued, facts: Facts) -> Sequence[Decision]:
        if self._box.waits(waiter):
            try:
                queued(lambda: self._box.scheduler.position(waiter.ticket, self._box.facts()))
            except Exception:  # noqa: BLE001 - its ticket waits on, and somebody has to take its lease
                self._log.failure("dispatch.listener_failed model={model}", model=waiter.ticket.model)
        return ()
