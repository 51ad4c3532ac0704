"""One simulated box: the daemon's own scheduler, its servers, and a clock that jumps.

What the scheduler decides is carried out as the daemon would: loads take the
model's load time, runs take as long as their arrival says.  The clock begins
at 0 and goes from one event to the next.  At one moment, those who arrive come
before what ends, and clients leave last.

Not simulated: TTLs, loads that fail, requests that go past the queue, and who
is refused at once because he would wait longer than `maxWait`; here he waits
that long, and is refused then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import assert_never

from llamaswap.config.model import SchedulerName, SerialSettings
from llamaswap.scheduling.estimates import Estimates
from llamaswap.scheduling.registry import make_scheduler
from llamaswap.scheduling.vocabulary import (
    Decision,
    Dispatch,
    Facts,
    Load,
    Refuse,
    Resume,
    Serve,
    Stop,
    Ticket,
    band_of,
)
from llamaswap.simulation.arrivals import Arrival
from llamaswap.simulation.results import Fate, Outcome
from llamaswap.simulation.scenario import Scenario
from llamaswap.simulation.servers import Fleet
from llamaswap.simulation.tally import Tally

Seen = Callable[[Outcome], None]
"""Told what became of each request, in the order in which they end."""

PROGRESS_EVERY = 1000
"""Requests from one word about progress to the next."""

_ENDED, _LOADED, _LEFT, _EXPIRED = range(4)  # at one moment, in this order


class _Job:
    """One request on its way."""

    __slots__ = ("arrival", "began", "dispatched", "served", "ticket")

    def __init__(self, ticket: Ticket, arrival: Arrival) -> None:
        self.ticket = ticket
        self.arrival = arrival
        self.dispatched: float | None = None
        self.served = 0.0
        self.began: float | None = None


class Box:
    """One scheduler, its servers and a clock.

    Args:
        scenario: what they are like.
        seen: told of each request that has ended.
        progress: told how many have ended, now and then.
    """

    def __init__(self, scenario: Scenario, seen: Seen | None, progress: Callable[[int], None]) -> None:
        self.tally = Tally()
        self.now = 0.0  # seconds
        self._ended = 0
        self._scenario = scenario
        self._seen = seen
        self._progress = progress
        # Only the budget asks for them: measuring is not free.
        self._estimates = Estimates() if scenario.scheduler.serial.swap_budget else None
        self._scheduler = make_scheduler(scenario.config, self._estimates)
        serial = scenario.scheduler.use is SchedulerName.SERIAL
        self._bounds = scenario.scheduler.serial if serial else None  # fifo knows none
        self._fleet = Fleet(scenario)
        self._jobs: dict[int, _Job] = {}
        self._runs = 0  # requests that run
        self._events: list[tuple[float, int, int, _Job | str]] = []  # the third tells any two apart
        self._counted = 0

    def arrive(self, arrival: Arrival, moment: float) -> None:
        """Let everything happen that comes before `moment`, then let a request arrive.

        Args:
            arrival: of one of the box's models.
            moment: seconds on the box's clock, not before the last one's.
        """
        events = self._events
        while events and events[0][0] < moment:
            self._next()
        self._move(moment)
        self.tally.requests += 1
        ticket = Ticket(
            number=self.tally.requests, model=arrival.model, priority=arrival.priority, arrived=moment
        )
        job = self._jobs[ticket.number] = _Job(ticket, arrival)
        if arrival.cancel_after is not None:
            self._later(arrival.cancel_after, _LEFT, job)
        self._carry_out(self._scheduler.arrived(ticket, self._facts()))
        if self._bounds is not None and job.dispatched is None and ticket.number in self._jobs:
            self._bound(job, self._bounds)

    def finish(self) -> None:
        """Let everything happen until every request has ended."""
        while self._jobs:
            if not self._events:
                raise RuntimeError(f"{len(self._jobs)} requests wait although nothing is due")
            self._next()

    # Time.

    def _later(self, seconds: float, kind: int, what: _Job | str) -> int:
        self._counted += 1
        heappush(self._events, (self.now + seconds, kind, self._counted, what))
        return self._counted

    def _move(self, moment: float) -> None:
        if moment > self.now:
            self.tally.passed(moment - self.now, runs=self._runs > 0, loads=bool(self._fleet.loads))
            self.now = moment

    def _next(self) -> None:
        """Let the next event happen, unless what it is about is over."""
        moment, kind, number, what = heappop(self._events)
        if isinstance(what, str):
            if self._fleet.loads.get(what) == number:
                self._move(moment)
                self._loaded(what)
        elif kind == _ENDED:
            self._move(moment)
            self._released(what)
        elif what.ticket.number in self._jobs and (what.began if kind == _LEFT else what.dispatched) is None:
            self._move(moment)
            self._gone(what, Fate.CANCELLED if kind == _LEFT else Fate.REFUSED)

    def _facts(self) -> Facts:
        return Facts(now=self.now, running=self._fleet.running, ready=self._fleet.ready)

    # Events.

    def _loaded(self, model: str) -> None:
        self._fleet.loaded(model)
        if self._estimates is not None:
            self._estimates.loaded(model, self._scenario.load_of(model))
        self._carry_out(self._scheduler.loaded(model, self._facts()))

    def _released(self, job: _Job) -> None:
        ticket = job.ticket
        self._runs -= 1
        waiting = self._fleet[ticket.model].done()
        if waiting is not None:
            self._begin(self._jobs[waiting.number])
        if self._estimates is not None:
            self._estimates.ran(ticket.model, self.now - job.served)
        self._end(job, Fate.SERVED)
        self._carry_out(self._scheduler.released(ticket, self._facts()))

    def _gone(self, job: _Job, fate: Fate) -> None:
        self._fleet[job.ticket.model].drop(job.ticket)
        self._end(job, fate)
        self._carry_out(self._scheduler.cancelled(job.ticket, self._facts()))

    def _bound(self, job: _Job, bounds: SerialSettings) -> None:
        """Refuse a newcomer who has to wait where too many do, or give him his deadline."""
        band = band_of(job.ticket.priority)
        most = bounds.max_queue.get(band)
        if most and self._scheduler.view(self.now).bands[band].depth > most:
            self._gone(job, Fate.REFUSED)
        elif longest := bounds.max_wait.get(band):
            self._later(longest, _EXPIRED, job)

    # Decisions.

    def _carry_out(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            match decision:
                case Dispatch(ticket, verdict):
                    self._jobs[ticket.number].dispatched = self.now
                    self.tally.dispatched(verdict)
                case Load(model, evict) | Resume(model, evict):
                    self._load(model, evict)
                case Serve(ticket):
                    self._serve(ticket)
                case Stop(models):
                    self._fleet.stop(models)
                case Refuse(ticket):
                    self._end(self._jobs[ticket.number], Fate.REFUSED)
                case _ as unknown:
                    assert_never(unknown)

    def _load(self, model: str, evict: frozenset[str]) -> None:
        self.tally.load_began(model, evict)
        self._fleet.stop(evict)
        self._fleet.load(model, self._later(self._scenario.load_of(model), _LOADED, model))

    def _serve(self, ticket: Ticket) -> None:
        job = self._jobs[ticket.number]
        job.served = self.now
        if self._fleet[ticket.model].take(ticket):
            self._begin(job)

    def _begin(self, job: _Job) -> None:
        job.began = self.now
        self._runs += 1
        self.tally.began(job.ticket, self.now - job.ticket.arrived)
        self._later(job.arrival.run, _ENDED, job)

    def _end(self, job: _Job, fate: Fate) -> None:
        del self._jobs[job.ticket.number]
        self.tally.ended(job.ticket, fate)
        self._ended += 1
        if self._ended % PROGRESS_EVERY == 0:
            self._progress(self._ended)
        if self._seen is not None:
            self._seen(
                Outcome(
                    number=job.ticket.number,
                    arrival=job.arrival,
                    fate=fate,
                    arrived=job.ticket.arrived,
                    dispatched=job.dispatched,
                    began=job.began,
                    ended=self.now,
                )
            )
