"""The box and those who want it: what the scheduler decides is done here.

Knows which decision belongs to whom, and what has to be told of it.  Who comes
and who leaves is the dispatcher's business, how models are loaded that of
`loads`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, assert_never

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from llamaswap.bounds import Bounds
from llamaswap.claims import Waiter
from llamaswap.config.model import SerialSettings
from llamaswap.errors import DeadlinePassed, NotReady, Refusal
from llamaswap.inbox import Inbox
from llamaswap.leases import BoxState, DispatchObserver, Lease, SwapReason
from llamaswap.loads import Loads, Reports
from llamaswap.measuring import Measures
from llamaswap.processes.fleet import Fleet
from llamaswap.processes.lifecycle import State
from llamaswap.scheduling.estimates import Estimates
from llamaswap.scheduling.protocol import Scheduler
from llamaswap.scheduling.vocabulary import (
    NO_BAND,
    Decision,
    Dispatch,
    Facts,
    Load,
    Refuse,
    Resume,
    Serve,
    Stop,
    Ticket,
    Verdict,
)

NOTEWORTHY_US = 100_000
"""Microseconds of waiting that make a dispatch worth a line in the log; the activity row tells of each."""

_READY: Final = State.READY  # looking a member up in its class takes as long as a call


class Box:
    """Does what the scheduler decides.

    Args:
        estimates: learn how long jobs and loads take; they outlive a change of the scheduler.
        settings: of the serial scheduler; None: it is another one, which knows no limits of waiting.

    Attributes:
        scheduler: who goes next.
        waiters: whoever has no lease yet, dispatched or not, by ticket number.
        post: lets the scheduler see an event.
        changed: called when no event is left: the queue may be another one now.
    """

    _log = Logger()

    def __init__(
        self,
        scheduler: Scheduler,
        fleet: Fleet,
        clock: IReactorTime,
        observer: DispatchObserver,
        estimates: Estimates,
        settings: SerialSettings | None,
    ) -> None:
        self.scheduler = scheduler
        self.observer = observer
        self.estimates = estimates
        self.waiters: dict[int, Waiter] = {}
        self.measures = Measures(observer, estimates)
        self.bounds = Bounds(clock, self._deadline_passed)
        self.loads = Loads(
            fleet,
            clock,
            Reports(
                began=self._load_began,
                ended=self._loaded,
                failed=self._failed,
                revived=self._revived,
                room=self._look_again,
                fits=lambda model: self.scheduler.fits(model, self.facts()),
                held=self.measures.holds,
            ),
        )
        self._fleet = fleet
        self._clock = clock
        self._inbox = Inbox(self.loads.facts, self._carry_out, self._settled)
        self.post = self._inbox.post
        # For which model who was dispatched last, and why.
        self._latest: tuple[str, SwapReason] = ("", "request")
        self._idle: list[Deferred[None]] = []
        self.changed: Callable[[], None] = lambda: None
        self._state: BoxState = "idle"
        self.serial = False
        self._configure(settings)

    def suspend(self) -> None:
        """Let all loads rest, and decide nothing more, until `reconfigure`."""
        self._inbox.hold()
        self.loads.suspend()

    def reconfigure(self, scheduler: Scheduler, settings: SerialSettings | None) -> None:
        """Let another scheduler take over; every ticket keeps its place, and its deadline."""
        self.suspend()
        handover = self.scheduler.hand_over()
        self.scheduler = scheduler
        self._configure(settings)
        self._inbox.go_on(lambda facts: scheduler.take_over(handover, facts))

    def facts(self) -> Facts:
        """Look at the world."""
        return self.loads.facts()

    def waits(self, waiter: Waiter) -> bool:
        """Return whether somebody is still in the queue."""
        return waiter.verdict is None and waiter.ticket.number in self.waiters

    def refuse(self, waiter: Waiter, refusal: Refusal, facts: Facts) -> Sequence[Decision]:
        """Return what takes a waiting ticket out of the queue; its row says how far it came."""
        ticket = waiter.ticket
        refusal.noted = self.scheduler.waiting_metadata(ticket, facts.now)
        return (*self.scheduler.cancelled(ticket, facts), Refuse(ticket, refusal))

    def forget(self, number: int) -> Waiter | None:
        """Take somebody off the list of those who have no lease yet."""
        self.bounds.drop(number)
        self.measures.forget(number)
        return self.waiters.pop(number, None)

    def when_idle(self) -> Deferred[None]:
        """Return a Deferred that fires when no lease is held and no dispatched ticket loads."""
        idle: Deferred[None] = Deferred()
        self._idle.append(idle)
        self._say_when_idle()
        return idle

    # What the scheduler decides.

    def _carry_out(self, decision: Decision, now: float) -> None:
        match decision:
            case Dispatch(ticket, verdict):
                self._dispatched(ticket, verdict, now)
            case Load(model, evict):
                self.loads.begin(model, evict, self._reason(model))
            case Resume(model, evict):
                self.loads.resume(model, evict)
            case Serve(ticket):
                self._serve(ticket)
            case Stop(models):
                for model in models:
                    self.loads.dismiss(model)
            case Refuse(ticket, refusal):
                self._refused(ticket, refusal, now)
            case _ as unknown:
                assert_never(unknown)

    def _dispatched(self, ticket: Ticket, verdict: Verdict, now: float) -> None:
        waiter = self.waiters.get(ticket.number)
        if waiter is None:
            return  # its caller left while this decision waited its turn, and counts as abandoned
        self._latest = (ticket.model, waiter.wish.reason)
        waiter.verdict = verdict
        waiter.dispatched = now
        waiter.turn = self._inbox.turn
        if self.bounds.deadlines:
            self.bounds.drop(ticket.number)
        self.observer.dispatched(verdict)
        if self.measures.expected:
            self.measures.compare(ticket.number, verdict)
        resident = ticket.model in self.loads.ready
        if verdict.waited_us >= NOTEWORTHY_US or verdict.changed_by or not resident:
            self._log_dispatch(ticket, verdict, resident)
        try:
            waiter.wish.told(verdict, now)
        except Exception:  # noqa: BLE001 - the box would be lost: the lease is the decision behind this one
            self._log.failure("dispatch.listener_failed model={model}", model=ticket.model)

    def _serve(self, ticket: Ticket) -> None:
        """Hand out the lease, unless the caller has gone: its cancellation is in the inbox then."""
        number = ticket.number
        waiter = self.waiters.pop(number, None)
        if waiter is None:
            return
        server = self._fleet[ticket.model]
        if server.state is not _READY:
            self.post(lambda facts: self.scheduler.released(ticket, facts))
            waiter.end(NotReady(ticket.model))
            return
        verdict, began = waiter.verdict, waiter.dispatched
        # Dispatched by the same event: there was nothing to load, whatever the clock says.
        load = 0.0
        if waiter.turn != self._inbox.turn:
            now = self._clock.seconds()
            load, began = now - began, now
        self.measures.serving[number] = (ticket.model, began, verdict)
        if waiter.wish.brief:
            self.measures.cut_short(number)
        crashes, stops = server.crashes, server.stops
        waiter.end(
            Lease(server=server, verdict=verdict, load=load, crashes=crashes, stops=stops, number=number)
        )

    def _refused(self, ticket: Ticket, refusal: Refusal, now: float) -> None:
        """Give somebody his refusal; the row of one who has waited for his turn says for how long."""
        waiter = self.forget(ticket.number)
        if waiter is None:
            return
        if waiter.ready is not None and waiter.verdict is None and not refusal.noted:
            refusal.noted = self.scheduler.waiting_metadata(waiter.ticket, now)
        waiter.end(refusal)

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

    # What happens to the world.

    def _reason(self, model: str) -> SwapReason:
        latest, reason = self._latest
        return reason if latest == model else "request"

    def _load_began(self, model: str, reason: SwapReason) -> None:
        self.observer.load_began(model)
        self.observer.swap(model, reason)

    def _loaded(self, model: str, seconds: float) -> None:
        self.measures.loaded(model, seconds)
        self.post(lambda facts: self.scheduler.loaded(model, facts))

    def _failed(self, model: str, why: str, output: Sequence[str]) -> None:
        self.post(lambda facts: self.scheduler.load_failed(model, why, output, facts))

    def _revived(self, lease: Lease, seconds: float | None) -> None:
        if seconds is not None:
            self.observer.load_ended(lease.server.model.id, seconds)
        self.measures.cut_short(lease.number)  # a load was in the middle of it
        self._look_again()

    def _look_again(self) -> None:
        """A wide model may take another job; whoever else waits for that server notices by himself."""
        if self.serial:
            self.post(lambda facts: self.scheduler.resume(NO_BAND, facts))

    def _deadline_passed(self, number: int, max_wait: float) -> None:
        def refuse(facts: Facts) -> Sequence[Decision]:
            waiter = self.waiters.get(number)
            if waiter is None or waiter.verdict is not None:
                return ()
            self.observer.bounded(self.scheduler.band(waiter.ticket), "deadline")
            return self.refuse(waiter, DeadlinePassed(max_wait), facts)

        self.post(refuse)

    def _settled(self, now: float) -> None:
        """No event is left: tell what the box does now, if that is new, and whether it does nothing."""
        state: BoxState = "run" if self.measures.serving else "load" if self.loads.under_way else "idle"
        if state != self._state:
            self._state = state
            self.observer.box(state, now)
        if self._idle:
            self._say_when_idle()
        self.changed()

    def _say_when_idle(self) -> None:
        if (
            not self._idle
            or self.measures.serving
            or any(waiter.verdict is not None for waiter in self.waiters.values())
        ):
            return
        idle, self._idle = self._idle, []
        for waiting in idle:
            waiting.callback(None)

    def _configure(self, settings: SerialSettings | None) -> None:
        self.serial = self.measures.learns = settings is not None
        self.bounds.configure(settings)
