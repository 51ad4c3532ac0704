"""Quantiles of the last few hundred measurements, to 1 %, in bounded space.

A `Sketch` counts measurements in bins whose width grows with their value
(DDSketch: Masson, Rim, Lee, VLDB 2019); the bins and the mapping are those of
the `ddsketch` package, whose own class does not show its bins.  What comes out
is a `Distribution`: a value that answers questions.

Old measurements lose their weight all at once: a sketch has two windows, and
when the current one is full the one before it is dropped.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from math import inf, log
from operator import mul

from ddsketch.mapping import LogarithmicMapping
from ddsketch.store import DenseStore

WINDOW = 250
"""Measurements in one window; between one and two windows count."""

RELATIVE_ERROR = 0.01
SHORTEST = 1e-4  # seconds; nothing shorter is told apart
LONGEST = 30 * 86400.0  # seconds; with SHORTEST it bounds the bins to about 1200

_MAPPING = LogarithmicMapping(RELATIVE_ERROR)


class Distribution:
    """How measurements spread; immutable.

    Args:
        values: seconds, growing.
        weights: how many measurements each of them stands for, > 0.
        tail: seconds; if above 0 there are no values, and this is the mean of an exponential.
    """

    __slots__ = ("_below", "_shares", "_tail", "_values", "_weights", "count", "mean", "variance")

    def __init__(self, values: Sequence[float], weights: Sequence[float], tail: float = 0.0) -> None:
        self._values = values
        self._weights = weights
        self._below = tuple(accumulate(weights))
        self._tail = tail
        self._shares: tuple[float, ...] = ()  # remembered
        self.count = round(self._below[-1]) if values else 0
        self.mean, self.variance = self._moments() if values else (tail, tail * tail)

    def quantile(self, q: float) -> float:
        """Return the smallest value that at least a share `q` does not exceed; 0 < q < 1."""
        if not self._values:
            return -self._tail * log(1.0 - q)
        return self._values[bisect_left(self._below, q * self._below[-1])]

    def shares(self, many: int) -> tuple[float, ...]:
        """Return `many` values that stand for the whole: the middle of each of as many equal shares."""
        if len(self._shares) != many:
            self._shares = tuple(self.quantile((index + 0.5) / many) for index in range(many))
        return self._shares

    def beyond(self, elapsed: float) -> Distribution:
        """Return how much longer it takes, given that it has taken `elapsed` seconds so far.

        That is the spread of the longer measurements, less `elapsed`.  Where
        none was longer the tail is taken for exponential (what exceeds a high
        threshold tends to be: Pickands, Balkema, de Haan), with the mean by
        which the longest tenth exceeds the p90, and at least 1 % of `elapsed`:
        the sketch sees no finer.  Of few measurements, n, even the longest
        says little: at least 1/(n + 1) of `elapsed`.
        """
        if elapsed <= 0.0 or not self._values:
            return self
        start = bisect_right(self._values, elapsed)
        if start < len(self._values):
            return Distribution([value - elapsed for value in self._values[start:]], self._weights[start:])
        floor = elapsed * max(RELATIVE_ERROR, 1.0 / (self.count + 1))
        return Distribution((), (), tail=max(floor, self._excess()))

    def _excess(self) -> float:
        threshold = self.quantile(0.9)
        start = bisect_right(self._values, threshold)
        total = sum(self._weights[start:])
        longer = zip(self._values[start:], self._weights[start:], strict=True)
        return sum((value - threshold) * weight for value, weight in longer) / total if total else 0.0

    def _moments(self) -> tuple[float, float]:
        total = self._below[-1]
        mean = sum(map(mul, self._values, self._weights)) / total
        squares = [(value - mean) ** 2 for value in self._values]
        return mean, sum(map(mul, squares, self._weights)) / total


class Sketch:
    """What was measured of one thing."""

    __slots__ = ("_current", "_due", "_left", "_median", "_previous", "_summary")

    def __init__(self) -> None:
        self._current = DenseStore()
        self._previous = DenseStore()
        self._left = WINDOW
        self._summary: Distribution | None = None
        self._median: float | None = None
        self._due = 0  # more measurements, and the median is worked out anew

    def add(self, seconds: float) -> None:
        """Count one measurement; one that no clock can have shown (negative, not finite) is none."""
        if not SHORTEST <= seconds <= LONGEST:
            if not 0.0 <= seconds < inf:
                return
            seconds = min(max(seconds, SHORTEST), LONGEST)
        if not self._left:
            self._previous, self._current, self._left = self._current, DenseStore(), WINDOW
        self._current.add(_MAPPING.key(seconds))
        self._left -= 1
        self._due -= 1
        self._summary = None

    def distribution(self) -> Distribution | None:
        """Return how what was measured spreads; None if nothing was."""
        if self._summary is None and self._current.count:
            both = DenseStore()
            both.copy(self._previous)
            both.merge(self._current)
            filled = [(_value(key), weight) for key, weight in enumerate(both.bins, both.offset) if weight]
            values, weights = zip(*filled, strict=True)
            self._summary = Distribution(values, weights)
        return self._summary

    def median(self) -> float | None:
        """Return the median; None if nothing was measured.

        For whoever asks after every measurement: it is as old as a thirty-second
        part of them at most, and costs next to nothing in between.
        """
        if self._due <= 0:
            distribution = self.distribution()
            if distribution is not None:
                self._median = distribution.quantile(0.5)
                self._due = max(1, distribution.count // 32)
        return self._median


@lru_cache(4096)
def _value(key: int) -> float:
    """Return the duration that a bin stands for, in seconds."""
    return _MAPPING.value(key)
