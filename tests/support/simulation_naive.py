"""A box that is slow and plain: it looks at every half second and at everybody in it.

It shares nothing with the simulator but the values that go in and come out,
and nothing with the schedulers but what they learn of run times.  Every moment
of its traces is a multiple of half a second, its models evict each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from typing_extensions import override

from llamaswap.scheduling.estimates import Estimates
from llamaswap.simulation.arrivals import Arrival
from llamaswap.simulation.results import Fate

TICK = 0.5


class Ending(NamedTuple):
    """What became of a request."""

    fate: Fate
    dispatched: float | None
    began: float | None
    ended: float


@dataclass(slots=True)
class Request:
    """One request on its way."""

    number: int
    arrival: Arrival
    arrived: float
    dispatched: float | None = None
    began: float | None = None
    ended: float | None = None


class NaiveBox:
    """What both kinds have in common: time, one loaded model, one load.

    Args:
        load: seconds of every load.
        width: jobs of one model at once.
    """

    def __init__(self, load: float, width: int = 1) -> None:
        self.now = 0.0
        self.load = load
        self.width = width
        self.waiting: list[Request] = []
        self.jobs: list[Request] = []  # dispatched and not ended
        self.ready: str | None = None
        self.loading: str | None = None
        self.loading_until = 0.0
        self.loads = 0
        self.endings: dict[int, Ending] = {}

    def play(self, arrivals: Sequence[Arrival]) -> dict[int, Ending]:
        """Let everything end; return what became of each request by its number."""
        first = arrivals[0].at if arrivals else 0.0
        coming = [Request(n, arrival, arrival.at - first) for n, arrival in enumerate(arrivals, start=1)]
        while len(self.endings) < len(arrivals):
            while coming and coming[0].arrived == self.now:
                self.waiting.append(coming.pop(0))
                self.look()
            while self.something_ends() or self.somebody_leaves():
                self.look()
            self.now += TICK
        return self.endings

    def look(self) -> None:
        """Dispatch whoever may go now."""
        raise NotImplementedError

    def something_ends(self) -> bool:
        """End a run or the load, if one is due."""
        due = [job for job in self.jobs if job.ended is not None and job.ended <= self.now]
        if due:
            job = min(due, key=lambda job: (job.began, job.number))
            self.jobs.remove(job)
            self.end(job, Fate.SERVED)
            return True
        if self.loading is not None and self.loading_until <= self.now:
            self.ready, self.loading = self.loading, None
            self.serve()
            return True
        return False

    def somebody_leaves(self) -> bool:
        """Let one client go whose patience is at its end."""
        for request in sorted((*self.waiting, *self.jobs), key=lambda request: request.number):
            patience = request.arrival.cancel_after
            if patience is not None and request.began is None and request.arrived + patience <= self.now:
                (self.waiting if request in self.waiting else self.jobs).remove(request)
                self.end(request, Fate.CANCELLED)
                return True
        return False

    def end(self, request: Request, fate: Fate) -> None:
        """Write down what became of a request."""
        self.endings[request.number] = Ending(fate, request.dispatched, request.began, self.now)
        self.serve()

    def dispatch(self, request: Request) -> None:
        """Let a request leave the queue."""
        self.waiting.remove(request)
        self.jobs.append(request)
        request.dispatched = self.now
        self.serve()

    def start_load(self, model: str) -> None:
        """Load a model instead of whatever is there."""
        self.ready, self.loading, self.loading_until = None, model, self.now + self.load
        self.loads += 1

    def serve(self) -> None:
        """Let the jobs of the loaded model run, as many as its server works on."""
        for job in self.jobs:
            running = sum(other.began is not None for other in self.jobs)
            if job.began is None and job.arrival.model == self.ready and running < self.width:
                job.began = self.now
                job.ended = self.now + job.arrival.run


class NaiveSerial(NaiveBox):
    """One job after the other, the best score first.

    Args:
        divisor: seconds a point; 0 = no aging.
        bonus: points for the loaded model.
        budget: seconds of its work that may go before a swap.
    """

    def __init__(
        self, load: float, divisor: float, bonus: int, width: int = 1, *, budget: float = 0.0
    ) -> None:
        super().__init__(load, width)
        self.divisor = Fraction(divisor)
        self.bonus = bonus
        self.budget = self.left = budget
        self.passed = 0
        self.estimates = Estimates()

    @override
    def look(self) -> None:
        while self.waiting:
            best = max(self.waiting, key=self.score)
            if self.jobs and not self.joins(best):
                return
            if best.arrival.model not in (self.ready, self.loading):
                best = self.before_swap() or best
            if best.arrival.model not in (self.ready, self.loading):
                self.start_load(best.arrival.model)
                self.left = self.budget
            self.dispatch(best)

    def before_swap(self) -> Request | None:
        """Return who may go before a swap."""
        ready = [request for request in self.waiting if request.arrival.model == self.ready]
        cost = self.estimates.expected_run(self.ready) if self.ready is not None else None
        if not ready or cost is None or cost > self.left:
            return None
        self.left -= cost
        self.passed += 1
        return max(ready, key=self.score)

    @override
    def end(self, request: Request, fate: Fate) -> None:
        if request.began is not None:
            self.estimates.ran(request.arrival.model, request.arrival.run)
        super().end(request, fate)

    def joins(self, request: Request) -> bool:
        """Return whether a request may run beside those that run."""
        return (
            len(self.jobs) < self.width
            and self.loading is None
            and all(job.arrival.model == request.arrival.model for job in self.jobs)
        )

    def score(self, request: Request) -> tuple[Fraction, int]:
        """Return the points of a request, and what decides between equals."""
        points = Fraction(request.arrival.priority)
        if request.arrival.model == self.ready:
            points += self.bonus
        if self.divisor:
            points += Fraction(self.now - request.arrived) / self.divisor
        return points, -request.number


class NaiveFifo(NaiveBox):
    """The loaded model's requests at once, into its server's queue; the others when none of them is left."""

    @override
    def look(self) -> None:
        for request in sorted(self.waiting, key=lambda each: (-each.arrival.priority, each.number)):
            model = request.arrival.model
            if model in (self.ready, self.loading):
                self.dispatch(request)
            elif not self.jobs and self.loading is None:
                self.start_load(model)
                self.dispatch(request)
