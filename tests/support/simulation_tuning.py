"""Tunings made of nothing but numbers."""

from __future__ import annotations

from array import array
from dataclasses import replace

from llamaswap.config.model import SerialSettings
from llamaswap.scheduling.vocabulary import Band
from llamaswap.simulation.engine import simulate
from llamaswap.simulation.pareto import pareto_front
from llamaswap.simulation.results import waits_of
from llamaswap.simulation.scenario import box_of
from llamaswap.simulation.tuning import Candidate, Objectives, Tuning


def candidate(
    interactive: float, normal: float, batch: float, swaps: int, *, budget: float = 0.0, bonus: int = 10
) -> Candidate:
    """Return a setting with these waits in seconds, below 0 = nobody of the band, and so many swaps."""
    waits = dict(zip(Band, (interactive, normal, batch), strict=True))
    nothing = simulate([], box_of("A"))
    return Candidate(
        settings=SerialSettings(swap_budget=budget, swap_affinity_bonus=bonus),
        results=replace(
            nothing,
            by_band={band: waits_of(array("d", [wait] if wait >= 0 else [])) for band, wait in waits.items()},
        ),
        objectives=Objectives(max(0.0, interactive), max(0.0, normal), max(0.0, batch), swaps),
    )


def tuning(*tried: Candidate, current: Candidate | None = None) -> Tuning:
    """Return what a sweep over these would; the first one is what is set now."""
    return Tuning(
        current=current or tried[0],
        baseline=simulate([], box_of("A").baseline()),
        tried=tried,
        front_places=pareto_front([one.objectives for one in tried]),
    )
