"""Carry out what the scheduler decides: tickets to Deferreds, loads to children, leases to callers.

The scheduler sees events one at a time.  What happens while a decision is
carried out (a handler that runs inside a `callback`, a load that ends at once)
becomes an event in the inbox and waits its turn, so nothing here recurses.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from types import TracebackType
from typing import Final, assert_never

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from typing_extensions import override

from llamaswap.ceilings import Ceiling
from llamaswap.chores import Chores
from llamaswap.doubts import Doubts
from llamaswap.errors import LoadRefused, NotReady, QueueFull, Refusal, ShuttingDown, UnknownModel
from llamaswap.leases import Abandoned, DispatchObserver, Lease, Queued
from llamaswap.processes.fleet import Fleet
from llamaswap.processes.lifecycle import State
from llamaswap.processes.server import LoadFailed, ServerGone
from llamaswap.scheduling.vocabulary import (
    Decision,
    Dispatch,
    Facts,
    Load,
    QueueView,
    Refuse,
    Scheduler,
    Serve,
    Stop,
    Ticket,
    Verdict,
)

NOTEWORTHY = 0.1
"""Seconds of waiting that make a dispatch worth a line in the log; the activity row tells of each."""

Told = Callable[[Verdict, float], None]
"""Told why a ticket was dispatched, and when, in seconds on the clock."""


class Waiter:
    """One ticket's caller, and what has been decided for it."""

    __slots__ = ("answer", "dispatched", "ready", "ticket", "told", "turn", "verdict")

    def __init__(self, ticket: Ticket, told: Told) -> None:
        self.ticket = ticket
        self.told = told
        self.answer: Lease | Refusal | None = None
        self.ready: Deferred[None] | None = None  # only of a caller that has to wait for its answer
        self.verdict: Verdict | None = None
        self.dispatched = 0.0
        self.turn = -1  # the event that dispatched it

    def lease(self) -> Lease:
        """Return the lease that the caller got, or raise the refusal."""
        assert self.answer is not None
        if isinstance(self.answer, Refusal):
            raise self.answer
        return self.answer

    def end(self, answer: Lease | Refusal) -> None:
        """Give the caller its answer."""
        self.answer = answer
        if self.ready is not None:
            self.ready.callback(None)


_READY: Final = State.READY  # looking a member up in its class takes as long as a call

_Event = Callable[[Facts], Sequence[Decision]]


class Dispatcher:
    """Gives out leases in the scheduler's order.

    Args:
        scheduler: who goes next.
        fleet: the server of every local model, by id.
        clock: stamps arrivals and measures waits; monotonic in the daemon.
        observer: counts.
        ceiling: how many may wait, those whose model loads included; None = any number.
    """

    _log = Logger()

    def __init__(
        self,
        scheduler: Scheduler,
        fleet: Fleet,
        clock: IReactorTime,
        observer: DispatchObserver,
        ceiling: Ceiling | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._fleet = fleet
        self._known = frozenset(fleet)
        self._clock = clock
        self._observer = observer
        self._ceiling = ceiling or Ceiling("waiting", clock, lambda _name: None)
        self._numbers = 0
        self._inbox: deque[_Event] = deque()
        self._draining = False
        self._turn = 0  # which event is being carried out
        self._waiters: dict[int, Waiter] = {}
        self._loads: dict[str, Deferred[None]] = {}
        self._chores = Chores()
        self._doubts = Doubts(clock)
        self._held: Counter[str] = Counter()  # leases of tickets, by model
        self._idle: list[Deferred[None]] = []
        self._looked = (-1, -1)  # what the fleet and the doubts were like when these two were found out
        self._running: frozenset[str] = frozenset()
        self._ready: frozenset[str] = frozenset()

    def lease(
        self,
        model: str,
        priority: int,
        *,
        looks_only: bool = False,
        told: Told = lambda _verdict, _now: None,
        queued: Queued | None = None,
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

        Raises:
            Refusal: the scheduler says no, the load failed, or the model is gone from the configuration.
            Abandoned: the caller was cancelled before it got its lease.
        """
        return _Claim(self, model, priority, looks_only, told, queued)

    def pass_by(self, model: str) -> Lease | None:
        """Return a lease for a call that only looks, if it needs no ticket now.

        Raises:
            UnknownModel: as `lease`.
        """
        if model not in self._known:
            raise UnknownModel
        scheduler = self._scheduler
        if scheduler.bypass_when_resident and scheduler.resident(model, self._facts()):
            return Lease(server=self._fleet[model], verdict=None, load=0.0)
        return None

    def enter(self, model: str, priority: int, told: Told, queued: Queued | None) -> Waiter:
        """Queue a ticket; its waiter may have its answer already.

        Raises:
            UnknownModel: as `lease`.
        """
        if model not in self._known:
            raise UnknownModel
        self._numbers += 1
        ticket = Ticket(number=self._numbers, model=model, priority=priority, arrived=self._clock.seconds())
        waiter = self._waiters[ticket.number] = Waiter(ticket, told)
        self._post(lambda facts: self._scheduler.arrived(ticket, facts))
        if len(self._waiters) > self._ceiling.most:
            self._post(partial(self._turn_away, ticket))
        if queued is not None:
            # An event of its own: a refusal must come before anything that begins an answer.
            self._post(partial(self._tell_queued, ticket, queued))
        return waiter

    def abandon(self, waiter: Waiter) -> Abandoned:
        """Take back the ticket of a caller that was cancelled; returns what it raises."""
        ticket, now = waiter.ticket, self._clock.seconds()
        self._waiters.pop(ticket.number, None)
        if waiter.verdict is None:
            self._observer.abandoned(self._scheduler.band(ticket))
        self._post(lambda facts: self._scheduler.cancelled(ticket, facts))
        about = self._scheduler.waiting_metadata(ticket, now)
        return Abandoned(ticket, waiter.verdict, now - ticket.arrived, about)

    def give_back(self, ticket: Ticket) -> None:
        """The job is done: the box is free."""
        self._held[ticket.model] -= 1
        self._post(lambda facts: self._scheduler.released(ticket, facts))

    async def unload(self, models: frozenset[str]) -> None:
        """Stop these models now, each with its own grace; returns when all are stopped."""
        stops = [self._stop(model, None) for model in sorted(models)]
        self._post(lambda facts: self._scheduler.unloaded(models, facts))
        await _all_stopped(stops)

    def close(self) -> None:
        """Refuse everybody who waits; whoever holds a lease keeps it."""
        self._post(self._scheduler.closing)

    def when_idle(self) -> Deferred[None]:
        """Return a Deferred that fires when no lease is held and no dispatched ticket loads."""
        idle: Deferred[None] = Deferred()
        self._idle.append(idle)
        self._say_when_idle()
        return idle

    def drop_loads(self, kept: Collection[str]) -> None:
        """Forget the loads of all models but these; their tickets wait for what `reconfigure` brings.

        Nobody may ask for any other model from now on, though it may still serve.
        """
        self._known = frozenset(kept)
        for model in self._loads.keys() - self._known:
            self._loads.pop(model).cancel()

    def reconfigure(self, scheduler: Scheduler) -> None:
        """Let another scheduler take over, once the fleet is another, too; every ticket keeps its place."""
        handover = self._scheduler.hand_over()
        self._scheduler = scheduler
        self._post(lambda facts: scheduler.take_over(handover, facts))

    def doubt(self, model: str) -> None:
        """A connection to this model's server broke: nobody else gets it before we know whether it ended."""
        server = self._fleet.get(model)
        if server is not None and server.state is _READY:
            self._doubts.begin(model)

    async def revive(self, lease: Lease) -> bool:
        """Find out, after a connection to a leased server was refused, whether another one is worth trying.

        It may have died a moment ago, before anybody could know; then it is started
        again, as part of the job that holds the lease: whatever may run beside it did.
        One that somebody has stopped stays stopped.

        Raises:
            LoadRefused: it could not be started.
        """
        server = lease.server
        model = server.model.id
        self.doubt(model)
        await self._doubts.over(model)
        if server.state is _READY:
            return True
        if lease.verdict is None or server.crashes == lease.crashes or self._fleet.get(model) is not server:
            return False
        began = self._clock.seconds()
        self._tell_of_load(model, frozenset())
        try:
            await server.ensure_ready()
        except LoadFailed as failed:
            raise LoadRefused(failed.why, failed.output) from failed
        self._observer.load_ended(model, self._clock.seconds() - began)
        return True

    def server_changed(self, model: str) -> None:
        """This model's server has come into another state."""
        self._doubts.end(model)

    def abandon_loads(self) -> None:
        """Forget every load under way; its waiters stay with whoever holds them."""
        self._chores.cancel_all()
        self._doubts.clear()

    def refuse_the_rest(self) -> None:
        """Refuse whoever still has no lease, dispatched or not: the daemon ends."""
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters.values():
            waiter.end(ShuttingDown())

    def wanted(self, model: str) -> bool:
        """Return whether a ticket for this model waits, loads or runs."""
        return self._scheduler.wanted(model)

    def view(self) -> QueueView:
        """Return the scheduler's snapshot."""
        return self._scheduler.view(self._clock.seconds())

    def _turn_away(self, ticket: Ticket, facts: Facts) -> Sequence[Decision]:
        """Refuse a newcomer that would have to wait; who came before keeps his place, urgent or not."""
        waiter = self._waiters.get(ticket.number)
        if waiter is None or waiter.verdict is not None:
            return ()
        self._ceiling.reached()
        return (*self._scheduler.cancelled(ticket, facts), Refuse(ticket, QueueFull()))

    def _tell_queued(self, ticket: Ticket, queued: Queued, facts: Facts) -> Sequence[Decision]:
        waiter = self._waiters.get(ticket.number)
        if waiter is not None and waiter.verdict is None:
            queued(lambda: self._scheduler.position(ticket, self._facts()))
        return ()

    def _post(self, event: _Event) -> None:
        """Let the scheduler see an event, after those that came before it."""
        self._inbox.append(event)
        if self._draining:
            return
        self._draining = True
        try:
            while self._inbox:
                self._turn += 1
                facts = self._facts()
                for decision in self._inbox.popleft()(facts):
                    self._carry_out(decision, facts.now)
        finally:
            self._draining = False
        if self._idle:
            self._say_when_idle()

    def _facts(self) -> Facts:
        """Look at the world; the servers one by one only if something about them has changed."""
        looked = (self._fleet.version, self._doubts.version)
        if looked != self._looked:
            self._looked = looked
            there = [
                (model, server)
                for model, server in self._fleet.items()
                if server.state not in (State.STOPPED, State.SHUTDOWN)
            ]
            self._running = frozenset(model for model, _ in there)
            self._ready = frozenset(
                model for model, server in there if server.lasting and model not in self._doubts
            )
        return Facts(now=self._clock.seconds(), running=self._running, ready=self._ready)

    def _carry_out(self, decision: Decision, now: float) -> None:
        match decision:
            case Dispatch(ticket, verdict):
                self._dispatched(ticket, verdict, now)
            case Load(model, evict):
                self._load(model, evict)
            case Serve(ticket):
                self._serve(ticket)
            case Stop(models):
                for model in models:
                    self._stop(model, None)
            case Refuse(ticket, refusal):
                waiter = self._waiters.pop(ticket.number, None)
                if waiter is not None:
                    waiter.end(refusal)
            case _ as unknown:
                assert_never(unknown)

    def _dispatched(self, ticket: Ticket, verdict: Verdict, now: float) -> None:
        waiter = self._waiters.get(ticket.number)
        if waiter is None:
            return  # its caller left while this decision waited its turn, and counts as abandoned
        waiter.verdict = verdict
        waiter.dispatched = now
        waiter.turn = self._turn
        self._observer.dispatched(verdict)
        resident = ticket.model in self._ready
        if verdict.waited >= NOTEWORTHY or verdict.changed_by or not resident:
            self._log_dispatch(ticket, verdict, resident)
        waiter.told(verdict, now)

    def _serve(self, ticket: Ticket) -> None:
        """Hand out the lease, unless the caller has gone: its cancellation is in the inbox then."""
        waiter = self._waiters.pop(ticket.number, None)
        if waiter is None:
            return
        server = self._fleet[ticket.model]
        if server.state is not _READY:
            self._post(lambda facts: self._scheduler.released(ticket, facts))
            waiter.end(NotReady(ticket.model))
            return
        # Dispatched by the same event: there was nothing to load, whatever the clock says.
        resident = waiter.turn == self._turn
        load = 0.0 if resident else self._clock.seconds() - waiter.dispatched
        self._held[ticket.model] += 1
        waiter.end(Lease(server=server, verdict=waiter.verdict, load=load, crashes=server.crashes))

    def _log_dispatch(self, ticket: Ticket, verdict: Verdict, resident: bool) -> None:
        self._log.info(
            "dispatch.dispatched model={model} ticket={ticket} band={band} priority={priority} "
            "score={score} waited={waited:.3f}s resident={resident}",
            model=ticket.model,
            ticket=ticket.number,
            band=verdict.band.value,
            priority=verdict.priority,
            score=verdict.score or "-",
            waited=verdict.waited,
            resident="yes" if resident else "no",
        )

    def _load(self, model: str, evict: frozenset[str]) -> None:
        self._tell_of_load(model, evict)
        load = self._chores.start(f"load {model}", self._make_ready(model, evict))
        if not load.called:
            self._loads[model] = load

    def _tell_of_load(self, model: str, evict: frozenset[str]) -> None:
        self._observer.load_began(model)
        self._log.info(
            "dispatch.load_began model={model} evict={evict}", model=model, evict=",".join(sorted(evict))
        )

    async def _make_ready(self, model: str, evict: frozenset[str]) -> None:
        """Stop what is in the way, make the model ready, and tell the scheduler how it went."""
        began = self._clock.seconds()
        try:
            # A model that others wait for gets the time a load gets, as in llama-swap.
            await _all_stopped([self._stop(m, self._fleet[m].model.health_check_timeout) for m in evict])
            await self._doubts.over(model)
            server = self._fleet[model]
            if server.outdated and not self._held[model]:
                await server.stop()  # whoever only looks must not keep it from its next job
            await server.ensure_ready()
        except LoadFailed as failed:
            self._loads.pop(model, None)
            why, output = failed.why, failed.output
            self._log.error("dispatch.load_failed model={model} why={why}", model=model, why=why)
            self._post(lambda facts: self._scheduler.load_failed(model, why, output, facts))
        else:
            self._loads.pop(model, None)
            self._observer.load_ended(model, self._clock.seconds() - began)
            self._post(lambda facts: self._scheduler.loaded(model, facts))

    def _stop(self, model: str, grace: float | None) -> Deferred[None]:
        """Stop a model; a load of it that is under way ends without a word to the scheduler."""
        load = self._loads.pop(model, None)
        if load is not None:
            load.cancel()
        return self._fleet[model].stop(grace)

    def _say_when_idle(self) -> None:
        if (
            not self._idle
            or any(self._held.values())
            or any(waiter.verdict is not None for waiter in self._waiters.values())
        ):
            return
        idle, self._idle = self._idle, []
        for waiting in idle:
            waiting.callback(None)


class _Claim(AbstractAsyncContextManager[Lease, None]):
    """One lease, from the wish for it to its end."""

    __slots__ = ("_dispatcher", "_lease", "_looks_only", "_model", "_priority", "_queued", "_ticket", "_told")

    def __init__(
        self,
        dispatcher: Dispatcher,
        model: str,
        priority: int,
        looks_only: bool,
        told: Told,
        queued: Queued | None,
    ) -> None:
        self._dispatcher = dispatcher
        self._model = model
        self._priority = priority
        self._looks_only = looks_only
        self._told = told
        self._queued = queued
        self._ticket: Ticket | None = None  # none for a call that went past the queue
        self._lease: Lease | None = None

    @override
    async def __aenter__(self) -> Lease:
        dispatcher = self._dispatcher
        lease = dispatcher.pass_by(self._model) if self._looks_only else None
        if lease is None:
            waiter = dispatcher.enter(self._model, self._priority, self._told, self._queued)
            if waiter.answer is None:
                waiter.ready = Deferred()
                try:
                    await waiter.ready
                except CancelledError:
                    raise dispatcher.abandon(waiter) from None
            lease = waiter.lease()
            self._ticket = waiter.ticket
        # While it is in use, its TTL does not run.
        lease.server.begin_use()
        self._lease = lease
        return lease

    @override
    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._lease is not None
        if kind is GeneratorExit:
            return  # thrown away together with everything that it belongs to
        try:
            self._lease.server.end_use()
        finally:
            if self._ticket is not None:
                self._dispatcher.give_back(self._ticket)


async def _all_stopped(stops: Iterable[Deferred[None]]) -> None:
    """Wait for stops that are under way.

    One by one, because cancelling a `DeferredList` lets it succeed: a load that
    was ended while it made room would go on and start its child.
    """
    for stop in stops:
        with suppress(ServerGone):  # shut down for good: nothing of it is left
            await stop
