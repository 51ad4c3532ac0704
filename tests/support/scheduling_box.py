"""A dispatcher without a network: it carries out what a scheduler decides and watches its promises.

Events wait in an inbox and are taken up one by one, decisions are carried out
in order, and each step checks what holds for every scheduler.  What a test
expects of one scheduler is that test's business.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import assert_never

import msgspec
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import Clock

from llamaswap.errors import Refusal
from llamaswap.scheduling.protocol import Scheduler
from llamaswap.scheduling.vocabulary import (
    Band,
    Decision,
    Dispatch,
    Facts,
    Load,
    MakeRoom,
    Refuse,
    Resume,
    Serve,
    Stop,
    Ticket,
    Verdict,
)
from support.scheduling_fleet import Fleet

Event = Callable[[Facts], Sequence[Decision]]
OUTPUT = ("loading weights", "out of memory")  # the last lines of a broken model


class Life(Enum):
    """Where a ticket is, as its client sees it."""

    WAITING = "waiting"
    DISPATCHED = "dispatched"
    SERVING = "serving"
    ENDED = "ended"
    REFUSED = "refused"
    CANCELLED = "cancelled"


class Box:
    """One scheduler, one fake fleet, one fake clock.

    Args:
        scheduler: the one under test.
        make_room: the planner that the scheduler was given.
        one_job: whether it promises at most one job at any moment.
        width: of which models it may have more, all of one and none that loads.
        protected: models that nobody else's ticket may end, but one that overrides that.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        make_room: MakeRoom,
        *,
        one_job: bool,
        width: Mapping[str, int] | None = None,
        protected: Iterable[str] = (),
    ) -> None:
        self.scheduler = scheduler
        self.clock = Clock()
        self.fleet = Fleet(self.clock, self._loaded, self._load_failed, self._child_starts)
        self.tickets: list[Ticket] = []  # all there ever were, in arrival order
        self.life: dict[int, Life] = {}
        self.dispatched: list[int] = []  # ticket numbers, in order
        self.served: list[int] = []
        self.verdicts: dict[int, Verdict] = {}
        self.dispatched_at: dict[int, float] = {}
        self.served_at: dict[int, float] = {}
        self.refused: dict[int, Refusal] = {}
        self.loads: list[tuple[str, frozenset[str]]] = []  # every Load, in order
        self.resumed: list[tuple[str, frozenset[str]]] = []  # every Resume, in order
        self.stops: list[frozenset[str]] = []
        self.waiting: dict[int, Ticket] = {}  # as the scheduler must see it
        self.jobs: dict[int, Ticket] = {}  # dispatched and not ended, as the scheduler must see it
        self.paused: set[Band] = set()
        self.facts = Facts(now=0.0)  # of the event that is being taken up
        self.on_dispatch: Callable[[Dispatch], None] = lambda _: None  # before the ticket leaves `waiting`
        self.on_refuse: Callable[[Ticket], None] = lambda _: None  # what a refused caller does next
        self.on_rest: Callable[[], None] = lambda: None  # after an event that no other follows at once
        self._make_room = make_room
        self._one_job = one_job
        self._width = width or {}
        self._protected = frozenset(protected)
        self._granted: dict[int, str] = {}  # jobs that an earlier configuration let run, and their models
        self._durations: dict[int, float] = {}
        self._timers: dict[int, IDelayedCall] = {}
        self._inbox: deque[Event] = deque()
        self._draining = False
        self._closed = False

    # What clients and operators do.

    def arrive(self, model: str, priority: int = 0, *, job: float = 1.0, overrides: bool = False) -> Ticket:
        """Let a request arrive whose upstream takes `job` seconds to answer."""
        ticket = Ticket(
            number=len(self.tickets) + 1,
            model=model,
            priority=priority,
            arrived=self.clock.seconds(),
            overrides=overrides,
        )
        self.tickets.append(ticket)
        self.life[ticket.number] = Life.WAITING
        self._durations[ticket.number] = job

        def taken_up(facts: Facts) -> Sequence[Decision]:
            self.waiting[ticket.number] = ticket
            return self.scheduler.arrived(ticket, facts)

        self._post(taken_up)
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """Let the ticket's client leave; nothing happens when it was answered already."""
        if self.life[ticket.number] not in (Life.WAITING, Life.DISPATCHED, Life.SERVING):
            return
        self._hang_up(ticket)
        self.life[ticket.number] = Life.CANCELLED

        def taken_up(facts: Facts) -> Sequence[Decision]:
            self.waiting.pop(ticket.number, None)
            self.jobs.pop(ticket.number, None)
            return self.scheduler.cancelled(ticket, facts)

        self._post(taken_up)

    def reprioritise(self, ticket: Ticket, priority: int) -> None:
        """Give a ticket another priority, if it still waits; `tickets` keeps the one that came."""

        def taken_up(facts: Facts) -> Sequence[Decision]:
            if self.scheduler.ticket(ticket.number) is None:
                assert ticket.number not in self.waiting
                return ()
            other, decisions = self.scheduler.reprioritise(ticket, priority, facts)
            assert other == msgspec.structs.replace(ticket, priority=priority)
            self.waiting[ticket.number] = other
            return decisions

        self._post(taken_up)

    def pause(self, *bands: Band) -> None:
        """Let nobody of these bands go on."""

        def taken_up(facts: Facts) -> Sequence[Decision]:
            self.paused.update(bands)
            return self.scheduler.pause(frozenset(bands), facts)

        self._post(taken_up)

    def resume(self, *bands: Band) -> None:
        """Let these bands go on."""

        def taken_up(facts: Facts) -> Sequence[Decision]:
            self.paused.difference_update(bands)
            return self.scheduler.resume(frozenset(bands), facts)

        self._post(taken_up)

    def unload(self, *models: str) -> None:
        """Stop models by order of the operator; what they were answering fails."""
        cut = [ticket for ticket in self.jobs.values() if ticket.model in models and self._serves(ticket)]
        self.fleet.stop(models)
        self._post(lambda facts: self.scheduler.unloaded(frozenset(models), facts))
        for ticket in filter(self._serves, cut):  # what happened meanwhile may have ended some
            self.finish(ticket)

    def finish(self, ticket: Ticket) -> None:
        """End the response of a served ticket."""
        self._hang_up(ticket)
        self.life[ticket.number] = Life.ENDED

        def taken_up(facts: Facts) -> Sequence[Decision]:
            del self.jobs[ticket.number]
            return self.scheduler.released(ticket, facts)

        self._post(taken_up)

    def close(self) -> None:
        """Begin to stop the daemon."""
        self._closed = True
        self._post(self.scheduler.closing)

    def reload(self, new: Box) -> None:
        """Go on under the scheduler of a fresh box, as a reload of the configuration does."""
        handover = self.scheduler.hand_over()
        self._granted = {number: ticket.model for number, ticket in self.jobs.items()}
        self.fleet.suspend()
        self.scheduler, self._make_room, self._one_job = new.scheduler, new._make_room, new._one_job
        self._width, self._protected = new._width, new._protected
        self._post(lambda facts: self.scheduler.take_over(handover, facts))
        self.fleet.forget_suspended()

    def advance(self, seconds: float) -> None:
        """Let time pass; what is due happens at its own moment, not at the end."""
        self.advance_to(self.clock.seconds() + seconds)

    def advance_to(self, moment: float) -> None:
        """Let time pass until `moment`, in seconds on the box's clock."""
        while (due := self._next_due()) is not None and due <= moment:
            self.clock.advance(due - self.clock.seconds())
        self.clock.advance(moment - self.clock.seconds())

    def settle(self) -> None:
        """Let time pass until nothing is due any more."""
        while (due := self._next_due()) is not None:
            self.clock.advance(due - self.clock.seconds())

    def _next_due(self) -> float | None:
        return min((call.getTime() for call in self.clock.getDelayedCalls()), default=None)

    def where(self, ticket: Ticket) -> Life:
        """Return what became of a ticket so far."""
        return self.life[ticket.number]

    # The inbox.

    def _post(self, event: Event) -> None:
        self._inbox.append(event)
        if self._draining:
            return
        self._draining = True
        try:
            while self._inbox:
                self._take_up(self._inbox.popleft())
        finally:
            self._draining = False

    def _take_up(self, event: Event) -> None:
        self.facts = Facts(
            now=self.clock.seconds(),
            running=self.fleet.running(),
            ready=frozenset(self.fleet.ready),
            stopping=self.fleet.stopping(),
        )
        for decision in event(self.facts):
            self._carry_out(decision)
        self._check()

    def _loaded(self, model: str) -> None:
        self._post(lambda facts: self.scheduler.loaded(model, facts))

    def _load_failed(self, model: str) -> None:
        self._post(lambda facts: self.scheduler.load_failed(model, "exited with 1", OUTPUT, facts))

    # Decisions.

    def _carry_out(self, decision: Decision) -> None:
        match decision:
            case Dispatch(ticket, verdict):
                self._dispatch(decision, ticket, verdict)
            case Load(model, evict):
                self._load(model, evict)
            case Resume(model, evict):
                self._resume(model, evict)
            case Serve(ticket):
                self._serve(ticket)
            case Stop(models):
                assert not models & self._models_of_jobs(), "stopped under a job"
                assert not models & self._kept(), "ended a protected model"
                self.stops.append(models)
                self.fleet.stop(models)
            case Refuse(ticket, refusal):
                self._refuse(ticket, refusal)
            case _ as unknown:
                assert_never(unknown)

    def _dispatch(self, decision: Dispatch, ticket: Ticket, verdict: Verdict) -> None:
        assert self.waiting.get(ticket.number) == ticket, "dispatched what does not wait"
        assert self.scheduler.band(ticket) not in self.paused, "dispatched what is paused"
        self.on_dispatch(decision)
        del self.waiting[ticket.number]
        self.jobs[ticket.number] = ticket
        assert len(self.jobs) == 1 or not self._one_job or self._fits(ticket), "two jobs"
        self.dispatched.append(ticket.number)
        self.verdicts[ticket.number] = verdict
        self.dispatched_at[ticket.number] = self.clock.seconds()
        if self.life[ticket.number] is Life.WAITING:
            self.life[ticket.number] = Life.DISPATCHED

    def _load(self, model: str, evict: frozenset[str]) -> None:
        assert model in self._models_of_jobs(), "a load for nobody"
        assert model not in evict
        busy = {ticket.model for ticket in self.jobs.values() if self._serves(ticket)}
        assert not evict & busy, "evicted under a running job"
        assert self._overrides(model) or not evict & self._kept(), "evicted a protected model"
        self.loads.append((model, evict))
        self.fleet.load(model, evict)

    def _resume(self, model: str, evict: frozenset[str]) -> None:
        assert model not in evict
        assert not evict & self._models_of_jobs(), "evicted under a job"
        assert self._overrides(model) or not evict & self._kept(), "evicted a protected model"
        assert model in self._models_of_jobs() or not evict, "evicted for nobody"
        self.resumed.append((model, evict))
        self.fleet.resume(model, evict)

    def _serve(self, ticket: Ticket) -> None:
        assert ticket.number in self.jobs, "served what was not dispatched"
        assert ticket.model in self.fleet.ready, "served without a model"
        if self.life[ticket.number] is Life.CANCELLED:
            return  # its client left while this decision waited its turn; the event is in the inbox
        assert self.life[ticket.number] is Life.DISPATCHED, "served twice"
        self.life[ticket.number] = Life.SERVING
        self.served.append(ticket.number)
        self.served_at[ticket.number] = self.clock.seconds()
        duration = self._durations[ticket.number]
        self._timers[ticket.number] = self.clock.callLater(duration, self.finish, ticket)

    def _refuse(self, ticket: Ticket, refusal: Refusal) -> None:
        assert not self._serves(ticket), "refused while being served"
        gone = self.waiting.pop(ticket.number, None) or self.jobs.pop(ticket.number, None)
        assert gone is not None, "refused what is not here"
        if self.life[ticket.number] is not Life.CANCELLED:
            self.life[ticket.number] = Life.REFUSED
            self.refused[ticket.number] = refusal
            self.on_refuse(ticket)

    def _hang_up(self, ticket: Ticket) -> None:
        timer = self._timers.pop(ticket.number, None)
        if timer is not None and timer.active():
            timer.cancel()

    # Promises.

    def _serves(self, ticket: Ticket) -> bool:
        return self.life[ticket.number] is Life.SERVING

    def _fits(self, ticket: Ticket) -> bool:
        """Whether the box takes this job beside those that it has."""
        wide = len(self.jobs) <= self._width.get(ticket.model, 1)
        return wide and self._models_of_jobs() == {ticket.model} and ticket.model in self.fleet.ready

    def _models_of_jobs(self) -> set[str]:
        return {ticket.model for ticket in self.jobs.values()}

    def _kept(self) -> frozenset[str]:
        """Return the protected models that run and stay."""
        return (self._protected & self.fleet.running()) - self.fleet.stopping()

    def _overrides(self, model: str) -> bool:
        return any(ticket.overrides for ticket in self.jobs.values() if ticket.model == model)

    def _child_starts(self, model: str) -> None:
        if self._one_job:
            granted = {model for number, model in self._granted.items() if number in self.jobs}
            crowd = self._make_room(model, self.fleet.running()) - (granted if model in granted else set())
            assert not crowd, f"{model} starts beside {sorted(crowd)}"

    def _check(self) -> None:
        """Check what holds between any two events."""
        view = self.scheduler.view(self.clock.seconds())
        assert sum(band.depth for band in view.bands.values()) == len(self.waiting)
        assert {ticket.number for ticket in view.jobs} == self.jobs.keys()
        assert view.paused == self.scheduler.paused == self.paused
        assert self.scheduler.waiting() == len(self.waiting)
        if self._closed:
            assert not self.waiting
        if self._inbox:
            return
        if any(self.scheduler.band(ticket) not in self.paused for ticket in self.waiting.values()):
            assert self.jobs or (self.fleet.loads and not self._one_job), "the box is free and somebody waits"
        if self._one_job and self.jobs:
            strays = self.fleet.loads.keys() - self._models_of_jobs() - self.fleet.ready - self._kept()
            assert not strays, f"{strays} load for nobody beside a job"
        lives = {number: life for number, life in self.life.items() if life is not Life.CANCELLED}
        assert self.waiting.keys() == {n for n, life in lives.items() if life is Life.WAITING}
        assert self.jobs.keys() == {n for n, life in lives.items() if life in (Life.DISPATCHED, Life.SERVING)}
        self.on_rest()
