"""When the box takes up each ticket of a procession.

Every duration is uncertain, so every moment here is one for each of the
futures (`llamaswap.scheduling.samples`), in seconds from now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import msgspec

from llamaswap.scheduling.estimates import Estimates
from llamaswap.scheduling.pick_order import Pick
from llamaswap.scheduling.samples import FUTURES, NOW, Slots, Times, after, after_many, dealt, latest
from llamaswap.scheduling.sketches import Distribution
from llamaswap.scheduling.vocabulary import Ticket


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One ticket that holds the box."""

    ticket: Ticket
    loading: bool
    since: float  # seconds on the clock of `Facts.now`: its dispatch while it loads, its lease after


class Timeline:
    """The box from now on.

    Once something is reached that was never measured, nothing after it has a time.

    Args:
        estimates: how long runs and loads take.
        width: how many jobs of a model run side by side; 1 where it says nothing.
        jobs: who holds the box.
        now: seconds, on the clock of the jobs.
    """

    def __init__(
        self, estimates: Estimates, width: Mapping[str, int], jobs: Sequence[Job], now: float
    ) -> None:
        self._runs = _Remembered(estimates.runs)
        self._loads = _Remembered(estimates.loads)
        self._width = width
        self._turn = 0
        self._free: Times | None = NOW  # when the box is free, without the slots and what was passed over
        self._slots: Slots | None = None
        self._model = ""  # whose slots they are
        self._earliest: Times = NOW  # the next of them goes no sooner
        self._later = _Sum()  # what was passed over
        self._swaps = _Sum()  # the loads among it, ever
        if jobs:
            self._take_up(jobs, now)

    def dispatch(self, pick: Pick, *, brief: bool = False) -> Times | None:
        """Let a ticket have the box; return when it gets it, None if nobody can say.

        Args:
            brief: as the ticket says.
        """
        together = pick.model == self._model and not pick.swap and not pick.budget
        if self._slots is not None and together and not self._later.some:
            return self._beside(self._slots, pick.model, brief=brief)
        begun = self.free()
        ready = self._spent(begun, self._loads[pick.model]) if pick.start else begun
        self._occupy(pick.model, ready, [ready if brief else self._spent(ready, self._runs[pick.model])])
        return begun

    def pass_over(self, pick: Pick, *, brief: bool = False) -> None:
        """`dispatch` where nobody asks when: only mean and variance of what it takes are kept."""
        if pick.start:
            self._later.add(self._loads[pick.model])
            self._swaps.add(self._loads[pick.model])
        if not brief:
            self._later.add(self._runs[pick.model], beside=self._width.get(pick.model, 1))

    def pass_over_many(self, counts: Mapping[str, int], passed: int) -> None:
        """Pass over so many more of each model, with loads as frequent as among the `passed` before."""
        for model, many in counts.items():
            if many:
                self._later.add(self._runs[model], many, beside=self._width.get(model, 1))
        self._later.add_sum(self._swaps, sum(counts.values()) / passed)

    def free(self) -> Times | None:
        """Return when all that was dispatched or passed over has ended; None if nobody can say."""
        if self._slots is not None:
            self._free, self._slots = self._slots.all_ended(), None
        if self._later.some:
            known = self._free if self._later.known else None
            self._free = None if known is None else self._later.after(known, self._next())
            self._later = _Sum()
        return self._free

    def _take_up(self, jobs: Sequence[Job], now: float) -> None:
        """Begin with what is left of the jobs that run now."""
        ready: Times | None = NOW
        ends: list[Times | None] = []
        for job in jobs:
            model, elapsed = job.ticket.model, max(0.0, now - job.since)
            runs, loads = self._runs[model], self._loads[model]
            if job.loading:
                ready = self._spent(NOW, loads and loads.beyond(elapsed))
                ends.append(ready if job.ticket.brief else self._spent(ready, runs))
            else:
                # A look that has begun is over in a moment, or else an open WebSocket.
                ends.append(None if job.ticket.brief else self._spent(NOW, runs and runs.beyond(elapsed)))
        one = len({job.ticket.model for job in jobs}) == 1
        self._occupy(jobs[0].ticket.model if one else "", ready, ends)

    def _occupy(self, model: str, ready: Times | None, ends: Sequence[Times | None]) -> None:
        """Let jobs of one model hold the box; more of them may come when it is ready."""
        known = [end for end in ends if end is not None]
        if ready is None or len(known) < len(ends):
            self._free = None
        elif self._width.get(model, 1) > 1:
            self._slots = Slots(known, max(len(known), self._width[model]))
            self._model, self._earliest = model, ready
        else:
            self._free = reduce(latest, known)

    def _beside(self, slots: Slots, model: str, *, brief: bool) -> Times:
        """Let one more go beside its like."""
        run = NOW if brief else self._spent(NOW, self._runs[model])
        self._earliest = slots.take(self._earliest, run or NOW)
        if run is None:  # those before were looks, and it was never measured
            self._free = self._slots = None
        return self._earliest

    def _spent(self, times: Times | None, taken: Distribution | None) -> Times | None:
        if times is None or taken is None:
            return None
        return after(times, dealt(taken.shares(FUTURES), self._next()))

    def _next(self) -> int:
        self._turn += 1
        return self._turn


class _Remembered(dict[str, Distribution | None]):
    """Asks once for each model."""

    def __init__(self, ask: Callable[[str], Distribution | None]) -> None:
        super().__init__()
        self._ask = ask

    def __missing__(self, model: str) -> Distribution | None:
        found = self[model] = self._ask(model)
        return found


class _Sum:
    """Mean and variance of many times, one after another."""

    __slots__ = ("known", "mean", "some", "variance")

    def __init__(self) -> None:
        self.some = False
        self.known = True
        self.mean = 0.0
        self.variance = 0.0

    def add(self, each: Distribution | None, many: float = 1.0, *, beside: int = 1) -> None:
        """Add so many that take turns, `beside` at a time."""
        self.some = True
        if each is None:
            self.known = False
        else:
            self.mean += each.mean * many / beside
            self.variance += each.variance * many / beside**2

    def add_sum(self, other: _Sum, share: float) -> None:
        """Add a share of another sum."""
        self.some = self.some or other.some
        self.known = self.known and other.known
        self.mean += other.mean * share
        self.variance += other.variance * share

    def after(self, times: Times, turn: int) -> Times:
        """Return the moments so much later."""
        return after_many(times, self.mean, self.variance, turn)
