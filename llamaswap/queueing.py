"""What people ask about the queue, and what they tell it.

Knows who waits, in which order and why, and how somebody is moved, sent away or
held up.  How any of it looks in JSON, and who may ask, is `web.queue`'s
business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec
from twisted.logger import Logger

from llamaswap.box import Box
from llamaswap.claims import Waiter
from llamaswap.errors import NeedsSerial, NoSuchTicket, Refusal
from llamaswap.prospects import Prospects
from llamaswap.scheduling.explaining import Explanation, Terms
from llamaswap.scheduling.forecast import Eta, Job, Planned
from llamaswap.scheduling.vocabulary import Band, BandView, Decision, Facts, Ticket


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """One ticket that was dispatched and has not ended."""

    ticket: Ticket
    band: Band
    waited: float  # seconds from its arrival to its dispatch
    loading: bool
    lasted: float  # seconds of its load so far, or since it got its lease
    remaining: Eta | None  # until its end; None if never measured


class TicketRow(msgspec.Struct, frozen=True, kw_only=True):
    """One ticket that waits."""

    ticket: Ticket
    band: Band
    waited: float  # seconds
    terms: Terms | None  # None where nothing is scored
    position: int  # by its score now: 1 + how many are ahead
    swap: bool | None  # needs a load when its turn comes; None: its turn is too far off to say
    budget: bool  # goes before a better one because the swap budget lets it
    paused: bool
    max_wait: float | None  # seconds from its arrival; None = for ever
    eta: Eta | None  # None if nobody can say


class QueuePage(msgspec.Struct, frozen=True, kw_only=True):
    """Some of those who wait, in the order in which they go if nobody comes, and what goes on."""

    serial: bool
    paused: frozenset[Band]
    waiting: int  # in all
    bands: Mapping[Band, BandView]
    jobs: Sequence[JobRow]
    tickets: Sequence[TicketRow]


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """One of those who wait, and why he does."""

    row: TicketRow
    explanation: Explanation
    now: float  # clock seconds, which the explanation's moments are compared with


class Queueing:
    """The questions and the orders."""

    _log = Logger()

    def __init__(self, box: Box) -> None:
        self._box = box

    @property
    def paused(self) -> frozenset[Band]:
        """The bands of which nobody is dispatched."""
        return self._box.scheduler.paused

    def queue(self, offset: int = 0, limit: int = 100) -> QueuePage:
        """Return a part of those who wait, in the order in which they go, and every job."""
        box, facts = self._box, self._box.facts()
        scheduler, prospects = box.scheduler, self.prospects(facts)
        view = scheduler.view(facts.now)
        return QueuePage(
            serial=box.serial,
            paused=scheduler.paused,
            waiting=scheduler.waiting(),
            bands=view.bands,
            jobs=[self._job_row(job, prospects) for job in prospects.jobs],
            tickets=[self._row(planned, facts) for planned in prospects.page(offset, limit)],
        )

    def explain(self, number: int, most: int = 100) -> Explained:
        """Return what there is to say of one who waits.

        Args:
            most: how many of those ahead are named; all are counted.

        Raises:
            NeedsSerial: under `fifo` nothing is scored.
            NoSuchTicket: nobody waits under this number.
        """
        ticket = self._find(number)
        box, facts = self._box, self._box.facts()
        prospects = self.prospects(facts)
        explanation = box.scheduler.explain(ticket, facts, most)
        planned = prospects.planned(ticket)
        eta = prospects.eta(ticket) if planned is None else planned.eta
        row = self._row(planned or Planned(ticket=ticket, swap=False, eta=eta, load=None), facts)
        if planned is None:
            row = msgspec.structs.replace(row, swap=None)
        return Explained(row=row, explanation=explanation, now=facts.now)

    def reprioritise(self, number: int, priority: int) -> None:
        """Give one who waits another priority; he keeps his age.  His new band's limit counts from now.

        Raises:
            NeedsSerial: as `explain`.
            NoSuchTicket: as `explain`.
        """
        self._find(number)
        self._box.post(partial(self._move, number, priority))

    def cancel(self, number: int) -> None:
        """Send one who waits away; to his caller that is as if somebody had cancelled the request.

        Raises:
            NoSuchTicket: nobody waits under this number.
        """
        waiter = self._box.waiters.get(number)
        if waiter is None or waiter.verdict is not None or waiter.ready is None:
            raise NoSuchTicket
        self._log.info(
            "queue.cancelled ticket={ticket} model={model}", ticket=number, model=waiter.ticket.model
        )
        waiter.ready.cancel()

    def pause(self, bands: frozenset[Band]) -> None:
        """Dispatch nobody of these bands any more; what is dispatched goes on.

        Raises:
            NeedsSerial: as `explain`.
        """
        self._hold(bands, "queue.paused bands={bands}")
        self._box.post(lambda facts: self._box.scheduler.pause(bands, facts))

    def resume(self, bands: frozenset[Band]) -> None:
        """Let these bands go on; those that a reload has taken along into `fifo`, too.

        Raises:
            NeedsSerial: nothing is paused there.
        """
        self._hold(bands, "queue.resumed bands={bands}", also=bool(self.paused))
        self._box.post(lambda facts: self._box.scheduler.resume(bands, facts))

    def prospects(self, facts: Facts | None = None) -> Prospects:
        """Return what is to be expected, in the light of these facts or of those of now."""
        box = self._box
        facts = facts or box.facts()
        view = box.scheduler.view(facts.now)
        return Prospects(box.scheduler, [self._job(job, facts) for job in view.jobs], facts, box.estimates)

    # Of those who arrive.

    def cares(self, waiter: Waiter) -> bool:
        """Return whether `admit` has something to do with a newcomer that has to wait."""
        box, wish = self._box, waiter.wish
        if wish.patient:
            return False
        if box.bounds.configured or wish.max_wait is not None:
            return True
        return box.measures.sample_due(waiter.ticket.arrived)

    def admit(self, waiter: Waiter, facts: Facts) -> Refusal | None:
        """Return why a newcomer may not wait; if he may, watch for how long he does.

        Now and then one is asked for only to see later how good the forecast was.
        """
        box, ticket, own = self._box, waiter.ticket, waiter.wish.max_wait
        scheduler, bounds, measures = box.scheduler, box.bounds, box.measures
        band, prospects = scheduler.band(ticket), self.prospects(facts)
        if bounds.most(band) is not None:
            depth = scheduler.view(facts.now).bands[band].depth
            full = bounds.too_many(band, depth, prospects)
            if full is not None:
                box.observer.bounded(band, "queue_full")
                return full
        hopeless = bounds.hopeless(ticket, band, own, lambda: prospects.eta(ticket))
        if hopeless is not None:
            box.observer.bounded(band, "hopeless")
            return hopeless
        if measures.sample_due(facts.now):
            measures.sample(ticket, prospects.eta(ticket), facts.now)
        bounds.begin(ticket, band, own)
        return None

    def _find(self, number: int) -> Ticket:
        if not self._box.serial:
            raise NeedsSerial
        ticket = self._box.scheduler.ticket(number)
        if ticket is None:
            raise NoSuchTicket
        return ticket

    def _hold(self, bands: frozenset[Band], line: str, *, also: bool = False) -> None:
        if not (self._box.serial or also):
            raise NeedsSerial
        self._box.measures.forget_all()
        self._box.bounds.eased()
        self._log.info(line, bands=",".join(band for band in Band if band in bands))

    def _move(self, number: int, priority: int, facts: Facts) -> Sequence[Decision]:
        box = self._box
        old, waiter = box.scheduler.ticket(number), box.waiters.get(number)
        if old is None or waiter is None:
            return ()
        waiter.ticket, decisions = box.scheduler.reprioritise(old, priority, facts)
        self._log.info(
            "queue.reprioritised ticket={ticket} model={model} from={old} to={new}",
            ticket=number,
            model=old.model,
            old=old.priority,
            new=priority,
        )
        box.measures.forget(number)
        box.bounds.eased()
        band = box.scheduler.band(waiter.ticket)
        if band is not box.scheduler.band(old) and not waiter.wish.patient:
            box.bounds.move(waiter.ticket, band)
        return decisions

    def _job(self, ticket: Ticket, facts: Facts) -> Job:
        serving = self._box.measures.serving.get(ticket.number)
        if serving is not None:
            return Job(ticket=ticket, loading=False, since=serving[1])
        waiter = self._box.waiters.get(ticket.number)
        return Job(ticket=ticket, loading=True, since=facts.now if waiter is None else waiter.dispatched)

    def _job_row(self, job: Job, prospects: Prospects) -> JobRow:
        ticket, now = job.ticket, prospects.facts.now
        serving, waiter = self._box.measures.serving.get(ticket.number), self._box.waiters.get(ticket.number)
        verdict = serving[2] if serving is not None else waiter.verdict if waiter is not None else None
        return JobRow(
            ticket=ticket,
            band=self._box.scheduler.band(ticket),
            waited=0.0 if verdict is None else verdict.waited,
            loading=job.loading,
            lasted=max(0.0, now - job.since),
            remaining=prospects.remaining(job),
        )

    def _row(self, planned: Planned, facts: Facts) -> TicketRow:
        scheduler, ticket = self._box.scheduler, planned.ticket
        band = scheduler.band(ticket)
        return TicketRow(
            ticket=ticket,
            band=band,
            waited=max(0.0, facts.now - ticket.arrived),
            terms=scheduler.terms(ticket, facts),
            position=scheduler.position(ticket, facts) or 1,
            swap=planned.swap,
            budget=planned.budget,
            paused=band in scheduler.paused,
            max_wait=self._box.bounds.max_wait(ticket.number),
            eta=planned.eta,
        )
