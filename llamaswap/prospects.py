"""What is to be expected of the queue at one moment.  Pure.

Knows the scheduler's plan, and how far it looks into it.  Who asks, and what
becomes of an answer, is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from llamaswap.scheduling.estimates import Estimates, Spread
from llamaswap.scheduling.forecast import Eta, Job, Planned
from llamaswap.scheduling.protocol import Scheduler
from llamaswap.scheduling.vocabulary import Band, Facts, Ticket

FAR: Final = 1000
"""Picks that are played through to find one ticket, at most."""

_NO_TIME: Final = Eta(0.0, 0.0)


class Prospects:
    """The queue as it stands; good until the next event.

    Args:
        jobs: what is dispatched.
        facts: the world now.
        estimates: how long jobs and loads take.
    """

    def __init__(self, scheduler: Scheduler, jobs: Sequence[Job], facts: Facts, estimates: Estimates) -> None:
        self.scheduler = scheduler
        self.jobs = jobs
        self.facts = facts
        self._estimates = estimates

    def eta(self, ticket: Ticket) -> Eta | None:
        """Return when a waiting ticket will be dispatched, if nobody comes; None if nobody can say."""
        return self.scheduler.eta(ticket, self.jobs, self.facts)

    def next_of(self, band: Band) -> Eta | None:
        """Return when the next ticket of a band will be dispatched; None if that is far off or unknown."""
        for planned in islice(self._plan(), FAR):
            if self.scheduler.band(planned.ticket) is band:
                return planned.eta
        return None

    def planned(self, ticket: Ticket) -> Planned | None:
        """Return a ticket as it will be when its turn comes; None if that is far off."""
        for planned in islice(self._plan(), FAR):
            if planned.ticket.number == ticket.number:
                return planned
        return None

    def page(self, offset: int, limit: int) -> list[Planned]:
        """Return a part of those who wait, in the order in which they go."""
        return list(islice(self.scheduler.plan(self.jobs, self.facts, offset), limit))

    def remaining(self, job: Job) -> Eta | None:
        """Return how long a job will go on, the rest of its load included; None if never measured."""
        model, elapsed = job.ticket.model, max(0.0, self.facts.now - job.since)
        if not job.loading:
            # What goes on after a look has begun may be an open WebSocket.
            return None if job.ticket.brief else _eta(self._estimates.remaining(model, elapsed))
        load = _eta(self._estimates.remaining_load(model, elapsed))
        run = _NO_TIME if job.ticket.brief else _eta(self._estimates.run(model))
        return None if load is None or run is None else Eta(load.p50 + run.p50, load.p90 + run.p90)

    def _plan(self) -> Iterator[Planned]:
        return self.scheduler.plan(self.jobs, self.facts)


def _eta(spread: Spread | None) -> Eta | None:
    return None if spread is None else Eta(spread.p50, spread.p90)
