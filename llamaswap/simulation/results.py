"""What a simulated box did, as values: waits, loads, and where the time went.

A wait lasts from the arrival until the run begins.  The load that the request
needed is in it, as for the client; `serial_queue_wait_ms` of the activity log
ends earlier, at the dispatch.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from math import ceil, fsum

import msgspec

from llamaswap.scheduling.vocabulary import Band, Term
from llamaswap.simulation.arrivals import Arrival


class Fate(StrEnum):
    """How a request ended."""

    SERVED = "served"
    CANCELLED = "cancelled"  # its client left before the run began
    REFUSED = "refused"  # by `concurrencyLimit`, `maxQueue` or `maxWait`


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one request; moments are seconds since the first arrival."""

    number: int  # from 1, in the order of arrival
    arrival: Arrival
    fate: Fate
    arrived: float
    dispatched: float | None  # None: never
    began: float | None  # the run; None: never
    ended: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How long some requests waited for their run to begin, in seconds; exact."""

    count: int = 0
    mean: float = 0.0
    p50: float = 0.0
    p95: float = 0.0
    max: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """A whole trace under one scenario.

    Every request was served, cancelled or refused; mappings by band have all three bands.
    """

    scenario: str  # its name
    requests: int
    waits: Waits  # of all that were served
    by_band: Mapping[Band, Waits]
    by_model: Mapping[str, Waits]  # in the order of the ids
    cancelled: Mapping[Band, int]
    refused: Mapping[Band, int]
    loads: Mapping[str, int]  # by model; those that were ended before they were done, too
    swaps: int  # loads for which another model had to go
    running: float  # seconds in which at least one request ran
    loading: float  # seconds in which a model loaded and nothing ran: lost
    idle: float  # seconds
    makespan: float  # seconds from the first arrival to the last end: the three together
    reorders: Mapping[Band, Mapping[Term, int]]
    """Dispatches that would have been of another request without this term, by the band of who went."""

    @property
    def loading_share(self) -> float:
        """The share of the time that was lost to loads, 0..1."""
        return self.loading / self.makespan if self.makespan else 0.0


def waits_of(*seconds: array[float]) -> Waits:
    """Return the count, mean and quantiles of all these together."""
    together = sorted(chain.from_iterable(seconds))
    if not together:
        return Waits()
    return Waits(
        count=len(together),
        mean=fsum(together) / len(together),
        p50=quantile(together, 0.5),
        p95=quantile(together, 0.95),
        max=together[-1],
    )


def quantile(ordered: list[float], share: float) -> float:
    """Return the smallest of these that at least `share` of them do not exceed.

    Args:
        ordered: ascending, not empty.
        share: above 0, at most 1.
    """
    return ordered[max(0, ceil(share * len(ordered)) - 1)]
