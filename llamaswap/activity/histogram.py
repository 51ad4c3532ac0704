"""How speeds are spread: bins and percentiles.

Pure arithmetic.  Where the values come from, and who sorts and counts them, is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log2
from typing import Any, Final

PERCENTILES: Final = (50, 95, 99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The frame of a histogram: `bins` equal parts from `low` to `high`, the last with its upper edge."""

    count: int  # of values, at least 1
    low: float
    high: float

    @property
    def bins(self) -> int:
        """Sturges' number of bins, 5..20; one when all values are equal."""
        return min(max(ceil(log2(self.count)) + 1, 5), 20) if self.bin_size else 1

    @property
    def bin_size(self) -> float:
        """Width of a bin; 0 when all values are equal."""
        parts = min(max(ceil(log2(self.count)) + 1, 5), 20)
        return (self.high - self.low) / parts

    def ranks(self) -> Sequence[int]:
        """Tell which values, counted from 0 in ascending order, the percentiles are made of."""
        places = [percent / 100 * (self.count - 1) for percent in PERCENTILES]
        return sorted({rank for place in places for rank in (floor(place), ceil(place))})


def histogram(spread: Spread, counts: Mapping[int, int], by_rank: Mapping[int, float]) -> dict[str, Any]:
    """Show a histogram as the API's object.

    Args:
        spread: the frame.
        counts: how many values each bin has; empty ones may be left out.
        by_rank: the value at each of `spread.ranks()`.
    """
    shown: dict[str, Any] = {
        "bins": [counts.get(number, 0) for number in range(spread.bins)],
        "min": spread.low,
        "max": spread.high,
        "binSize": spread.bin_size,
    }
    for percent in PERCENTILES:
        shown[f"p{percent}"] = _percentile(percent, spread, by_rank)
    return shown


def _percentile(percent: int, spread: Spread, by_rank: Mapping[int, float]) -> float:
    place = percent / 100 * (spread.count - 1)
    below, above = by_rank[floor(place)], by_rank[ceil(place)]
    return below + (above - below) * (place - floor(place))
