"""Traces for tests: small ones as hypothesis draws them, and a synthetic afternoon as long as one likes."""

from __future__ import annotations

import random
from collections.abc import Iterator

from hypothesis import strategies as st

from llamaswap.simulation.arrivals import Arrival

MODELS = ("A", "B", "C")
BANDS = (100, 0, 0, -100)


def arrival(
    at: float, model: str = "A", priority: int = 0, run: float = 1.0, cancel_after: float | None = None
) -> Arrival:
    """Return an arrival with what a test does not care about filled in."""
    return Arrival(at=at, model=model, priority=priority, run=run, cancel_after=cancel_after)


def afternoon(requests: int, *, load: float = 0.55, run: float = 8.0, models: int = 4) -> Iterator[Arrival]:
    """Yield a stream of requests at random moments, always the same one.

    Args:
        requests: how many.
        load: the share of the time that the runs alone take.
        run: seconds of a mean run.
        models: `m0`, which is asked for most, `m1`, ...
    """
    dice = random.Random(1)
    moment = 0.0
    for _ in range(requests):
        moment += dice.expovariate(load / run)
        model = min(models - 1, int(dice.expovariate(0.8)))
        yield arrival(moment, f"m{model}", dice.choice(BANDS), dice.expovariate(1 / run))


def _moments(most: int) -> st.SearchStrategy[float]:
    """Multiples of half a second."""
    return st.integers(0, most).map(lambda halves: halves / 2)


@st.composite
def small_traces(draw: st.DrawFn, *, impatient: bool = True) -> list[Arrival]:
    """Draw up to 25 arrivals whose moments are multiples of half a second."""
    patience = st.one_of(st.none(), _moments(60)) if impatient else st.none()
    moment, arrivals = 0.0, []
    for _ in range(draw(st.integers(0, 25))):
        moment += draw(_moments(12))
        arrivals.append(
            arrival(
                moment,
                draw(st.sampled_from(MODELS)),
                draw(st.sampled_from((0, 0, 1, 100, -100, -98))),
                draw(_moments(20)),
                draw(patience),
            )
        )
    return arrivals
