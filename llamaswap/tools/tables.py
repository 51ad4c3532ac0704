"""Simulated runs as a table for people and as facts for programs; what a number means is not known here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from llamaswap.config.model import SchedulerName
from llamaswap.scheduling.vocabulary import Band, Term
from llamaswap.simulation.results import Results, Waits
from llamaswap.simulation.scenario import Scenario

KEY = "serial A/B/C: agingDivisor A, swapAffinityBonus B, swapBudgetSeconds C (none if it is not there)"
KEY_OF_WIDTHS = "MODEL xN: width N"

Line = tuple[str, str, Sequence[str]]


def side_by_side(results: Sequence[Results]) -> str:
    """Return one column for each run, waits in seconds; lines that say nothing are left out."""
    lines = [("", "", [one.scenario for one in results]), *_lines(results)]
    first, second = (max(len(line[place]) for line in lines) for place in (0, 1))
    widths = [max(len(line[2][column]) for line in lines) for column in range(len(results))]
    return "".join(
        f"{group:<{first}}  {name:<{second}}  "
        + "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        + "\n"
        for group, name, cells in lines
    )


def grid(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows below titles, the first column to the left, all others to the right."""
    widths = [max(len(row[place]) for row in (titles, *rows)) for place in range(len(titles))]
    return "".join(
        "  ".join(
            f"{cell:<{width}}" if place == 0 else f"{cell:>{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        + "\n"
        for row in (titles, *rows)
    )


def seconds(value: float) -> str:
    """Write seconds: tenths below ten, whole ones above."""
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def facts(scenario: Scenario, results: Results) -> dict[str, Any]:
    """Return one run for programs; every time is in seconds, to the millisecond."""
    return {
        "name": results.scenario,
        "scheduler": scheduler_facts(scenario),
        "requests": results.requests,
        "bands": {
            band.value: {
                **_waits(results.by_band[band]),
                "cancelled": results.cancelled[band],
                "refused": results.refused[band],
                "reorders": {term.value: results.reorders[band][term] for term in Term},
            }
            for band in Band
        },
        "models": {model: _waits(waits) for model, waits in results.by_model.items()},
        "loads": dict(results.loads),
        "swaps": results.swaps,
        "running": round(results.running, 3),
        "loading": round(results.loading, 3),
        "idle": round(results.idle, 3),
        "makespan": round(results.makespan, 3),
    }


def scheduler_facts(scenario: Scenario) -> dict[str, Any]:
    """Return a scheduler's settings under the names that the configuration has for them."""
    scheduler = scenario.scheduler
    if scheduler.use is SchedulerName.FIFO:
        return {"use": scheduler.use.value}
    serial = scheduler.serial
    return {
        "use": scheduler.use.value,
        "agingDivisor": serial.aging_divisor,
        "swapAffinityBonus": serial.swap_affinity_bonus,
        "swapBudgetSeconds": serial.swap_budget,
        "width": dict(serial.width),
    }


def _waits(waits: Waits) -> dict[str, float]:
    return {name: round(value, 3) for name, value in asdict(waits).items()}


def _lines(results: Sequence[Results]) -> Iterator[Line]:
    for band in Band:
        waits = [one.by_band[band] for one in results]
        if any(wait.count for wait in waits):
            yield (f"{band.value}, wait in s", "p50", [seconds(wait.p50) for wait in waits])
            yield ("", "p95", [seconds(wait.p95) for wait in waits])
            yield ("", "longest", [seconds(wait.max) for wait in waits])
    for name, counts in (
        ("left before its turn", [one.cancelled for one in results]),
        ("refused", [one.refused for one in results]),
    ):
        for band in Band:
            if any(count[band] for count in counts):
                yield (name, band.value, [str(count[band]) for count in counts])
    yield ("swaps", "", [str(one.swaps) for one in results])
    yield ("lost to loads", "s", [seconds(one.loading) for one in results])
    yield ("", "share", [f"{one.loading_share:.0%}" for one in results])
    title = "changed the order"
    for term in Term:
        told = [sum(one.reorders[band][term] for band in Band) for one in results]
        if any(told):
            yield (title, term.value.replace("_", " "), [str(count) for count in told])
            title = ""
