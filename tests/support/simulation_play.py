"""Traces through a simulated box, and who went when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from llamaswap.simulation.arrivals import Arrival
from llamaswap.simulation.engine import simulate
from llamaswap.simulation.results import Outcome, Results
from llamaswap.simulation.scenario import Scenario, box_of
from support.simulation_naive import Ending
from support.simulation_traces import MODELS


def box(load: float = 2.0, models: Sequence[str] = MODELS, **serial: Any) -> Scenario:
    """Return a box with loads that all take as long."""
    return replace(box_of(models, **serial), default_load=load)


def play(arrivals: Sequence[Arrival], scenario: Scenario) -> tuple[Results, dict[int, Outcome]]:
    """Return the results, and what became of each request by its number."""
    outcomes: list[Outcome] = []
    results = simulate(arrivals, scenario, seen=outcomes.append)
    return results, {outcome.number: outcome for outcome in outcomes}


def endings(outcomes: dict[int, Outcome]) -> dict[int, Ending]:
    """What a plain box tells of each request."""
    return {
        number: Ending(outcome.fate, outcome.dispatched, outcome.began, outcome.ended)
        for number, outcome in outcomes.items()
    }


def order(outcomes: dict[int, Outcome]) -> list[int]:
    """Who was dispatched, one after the other."""
    gone = [outcome for outcome in outcomes.values() if outcome.dispatched is not None]
    return [outcome.number for outcome in sorted(gone, key=lambda each: (each.dispatched, each.began))]
