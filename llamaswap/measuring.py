"""What the box does, measured: how long jobs and loads take, and how wrong the forecasts were.

Knows moments and numbers of tickets.  What is made of the measurements is the
business of `scheduling.estimates` and of whoever counts.
"""

from __future__ import annotations

from typing import Final

from llamaswap.leases import DispatchObserver
from llamaswap.scheduling.estimates import Estimates
from llamaswap.scheduling.forecast import Eta
from llamaswap.scheduling.vocabulary import Ticket, Verdict

SAMPLED_EVERY: Final = 1.0
"""Seconds between two tickets whose wait is forecast only to see how good forecasts are, at least."""


class Measures:
    """Measures jobs from their lease to their end, and loads.

    Args:
        estimates: learn from it.

    Attributes:
        learns: whether they do: nobody asks them under `fifo`.
        serving: by ticket number the model, clock seconds of the lease, and why it was dispatched.
        expected: by ticket number the seconds of waiting that were forecast, of the samples.
    """

    def __init__(self, observer: DispatchObserver, estimates: Estimates) -> None:
        self._observer = observer
        self._estimates = estimates
        self.learns = False
        self.serving: dict[int, tuple[str, float, Verdict | None]] = {}
        self._cut: set[int] = set()  # those of them that will tell nothing about how long a job takes
        self._sample_at = float("-inf")  # clock seconds of the next sample
        self.expected: dict[int, float] = {}

    def holds(self, model: str) -> bool:
        """Return whether a ticket holds a lease of this model."""
        return any(serving[0] == model for serving in self.serving.values())

    def ended(self, number: int, now: float, *, whole: bool) -> None:
        """A lease was given back; only what was answered to its end tells how long such jobs take."""
        model, since, _ = self.serving.pop(number)
        if self._cut and number in self._cut:
            self._cut.discard(number)
        elif whole and self.learns:
            self._estimates.ran(model, now - since)

    def cut_short(self, number: int) -> None:
        """The job of this lease will tell nothing, since it failed, say; a number without a lease is none."""
        if number in self.serving:
            self._cut.add(number)

    def loaded(self, model: str, seconds: float) -> None:
        """A load made its model ready."""
        self._observer.load_ended(model, seconds)
        if self.learns:
            self._estimates.loaded(model, seconds)

    # How good forecasts are.

    def sample_due(self, now: float) -> bool:
        """Return whether the wait of who arrives now should be forecast."""
        return self.learns and now >= self._sample_at

    def sample(self, ticket: Ticket, eta: Eta | None, now: float) -> None:
        """Remember what was expected of a ticket that waits; None is a forecast, too, but tells nothing."""
        self._sample_at = now + SAMPLED_EVERY
        if eta is not None:
            self.expected[ticket.number] = now - ticket.arrived + eta.p50

    def compare(self, number: int, verdict: Verdict) -> None:
        """A ticket was dispatched: tell how wrong its forecast was, if it had one."""
        expected = self.expected.pop(number, None)
        if expected is not None:
            self._observer.eta_missed(verdict.band, abs(verdict.waited - expected))

    def forget(self, number: int) -> None:
        """The ticket has left otherwise, or somebody moved it: its forecast was about something else."""
        self.expected.pop(number, None)

    def forget_all(self) -> None:
        """Somebody holds the queue up, or lets it go on."""
        self.expected.clear()
