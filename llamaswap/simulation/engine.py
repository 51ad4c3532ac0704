"""Play a trace against a scenario, in virtual time.

The clock reads 0 at the first arrival.  Nothing is drawn, so that the same
trace and scenario always give the same results.  What happens in between is
`llamaswap.simulation.box`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from math import inf

from llamaswap.simulation.arrivals import Arrival
from llamaswap.simulation.box import Box, Seen
from llamaswap.simulation.results import Results
from llamaswap.simulation.scenario import Scenario

Progress = Callable[[int, int | None], None]
"""Told how many requests have ended, and of how many; None = nobody knows yet."""


class BadTrace(ValueError):
    """An arrival that cannot be: out of order, of an unknown model, or no number."""


def simulate(
    arrivals: Iterable[Arrival],
    scenario: Scenario,
    *,
    progress: Progress = lambda _done, _total: None,
    seen: Seen | None = None,
) -> Results:
    """Play a trace until its last request has ended.

    Args:
        arrivals: in the order of their moments; walked once, so that it may be longer than the memory.
        scenario: the box.
        progress: called for every thousandth request that has ended, and at the end.
        seen: called for each request; None = nobody wants to know.

    Raises:
        BadTrace: an arrival is out of order, of a model that the box does not have, or not finite.
    """
    total = len(arrivals) if isinstance(arrivals, Sized) else None
    box = Box(scenario, seen, lambda done: progress(done, total))
    first, last = None, 0.0
    for number, arrival in enumerate(arrivals, start=1):
        first = arrival.at if first is None else first
        moment = arrival.at - first
        _check(arrival, number, moment, last, scenario)
        box.arrive(arrival, moment)
        last = moment
    total = box.tally.requests
    box.finish()
    progress(total, total)
    return box.tally.results(scenario.name)


def _check(arrival: Arrival, number: int, moment: float, last: float, scenario: Scenario) -> None:
    """Object to what cannot be."""
    place = f"arrival {number}"
    if not last <= moment < inf:
        raise BadTrace(f"{place} comes at {arrival.at:g} s: earlier than the one before it, or never")
    if not 0 <= arrival.run < inf:
        raise BadTrace(f"{place} runs for {arrival.run:g} s")
    if arrival.cancel_after is not None and not arrival.cancel_after >= 0:
        raise BadTrace(f"{place} leaves after {arrival.cancel_after:g} s")
    if arrival.model not in scenario.config.models:
        raise BadTrace(f"{place} wants {arrival.model!r}, which is no model of this box")
