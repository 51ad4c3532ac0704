"""The swap budget: how much work a model may still do before a swap ends it.

A model that is loaded may be worth keeping for a few short jobs more, although
somebody else's turn has come.  The budget says for how many seconds of
estimated work, counted from one load to the next.  It bounds what the swap
costs those who wait for it, and knows neither them nor their scores.

A model whose jobs were never measured has no budget: nobody is held up for an
unknown time.
"""

from __future__ import annotations

from collections.abc import Iterable

from llamaswap.scheduling.estimates import Estimates
from llamaswap.scheduling.vocabulary import MICROSECONDS


class SwapBudget:
    """What may still be done before the next swap.

    Args:
        seconds: of estimated work between two loads, >= 0.
        estimates: how long jobs take.
    """

    __slots__ = ("_estimates", "_full_us", "_left_us")

    def __init__(self, seconds: float, estimates: Estimates) -> None:
        self._full_us = round(seconds * MICROSECONDS)
        self._left_us = self._full_us
        self._estimates = estimates

    @property
    def left(self) -> float:
        """Seconds of estimated work that still fit, never negative."""
        return max(0, self._left_us) / MICROSECONDS

    @property
    def spent(self) -> float:
        """Seconds of estimated work done since the last load."""
        return (self._full_us - self._left_us) / MICROSECONDS

    def renew(self) -> None:
        """Begin anew: a load begins."""
        self._left_us = self._full_us

    def affordable(self, models: Iterable[str]) -> dict[str, int]:
        """Return those of these models whose next job fits, each with its cost.

        Returns:
            Microseconds of estimated work, at least 1, by model.
        """
        costs: dict[str, int] = {}
        for model in models:
            seconds = self._estimates.expected_run(model)
            if seconds is not None:
                cost = max(1, round(seconds * MICROSECONDS))
                if cost <= self._left_us:
                    costs[model] = cost
        return costs

    def spend(self, cost: int) -> None:
        """Take off microseconds that `affordable` named, or that another budget had spent."""
        self._left_us -= cost
