"""`llama-swap simulate`: a trace under some settings, side by side with `fifo`."""

from __future__ import annotations

import argparse
import json
from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TextIO, TypeAlias

from llamaswap.scheduling.vocabulary import Band, band_of
from llamaswap.simulation.engine import simulate
from llamaswap.simulation.plots import draw_waits
from llamaswap.simulation.progress import bar
from llamaswap.simulation.results import Outcome, Results
from llamaswap.simulation.scenario import Scenario
from llamaswap.tools import replay
from llamaswap.tools.contenders import contenders
from llamaswap.tools.tables import KEY, KEY_OF_WIDTHS, facts, side_by_side

Waits: TypeAlias = "dict[str, dict[str, array[float]]]"
"""Seconds by band and setting."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command understands."""
    replay.add_arguments(parser)
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change a setting of the serial scheduler: agingDivisor, swapAffinityBonus, swapBudgetSeconds,"
        " width.MODEL",
    )
    parser.add_argument(
        "--against",
        metavar="WHAT",
        action="append",
        default=[],
        help="besides fifo, compare with: serial (its defaults), config (as configured) or KEY=VALUE,...",
    )


def run(options: argparse.Namespace, out: TextIO, err: TextIO, environ: Mapping[str, str]) -> None:
    """Play the trace under each setting, and write the comparison.

    Raises:
        Unusable, ConfigRejected: something that the command line names can't be used.
    """
    told = replay.read(options, environ, err)
    played = contenders(told.box, options.set, options.against)
    waits: Waits = {band.value: defaultdict(lambda: array("d")) for band in Band}
    results = [_play(told, scenario, waits, err, plotted=options.plot is not None) for scenario in played]
    if options.plot is not None:
        draw_waits(options.plot, waits, f"{len(told.arrivals)} requests: who runs after how long")
    if options.json:
        out.write(json.dumps(_facts(told, played, results), indent=2) + "\n")
    else:
        out.write(_text(told, played, results))


def _play(told: replay.Replay, scenario: Scenario, waits: Waits, err: TextIO, *, plotted: bool) -> Results:
    with bar(err, scenario.name) as progress:
        seen = _recorder(waits, scenario.name) if plotted else None
        return simulate(told.arrivals, scenario, progress=progress, seen=seen)


def _recorder(waits: Waits, name: str) -> Callable[[Outcome], None]:
    def seen(outcome: Outcome) -> None:
        if outcome.began is not None:
            band = band_of(outcome.arrival.priority)
            waits[band.value][name].append(outcome.began - outcome.arrived)

    return seen


def _facts(told: replay.Replay, played: list[Scenario], results: list[Results]) -> dict[str, object]:
    return {
        "requests": len(told.arrivals),
        "loads": {model: told.box.load_of(model) for model in told.arrivals.models},
        "notes": list(told.notes),
        "results": [facts(scenario, one) for scenario, one in zip(played, results, strict=True)],
    }


def _text(told: replay.Replay, played: list[Scenario], results: list[Results]) -> str:
    loads = ", ".join(f"{model} {told.box.load_of(model):g} s" for model in told.arrivals.models)
    widths = any(scenario.scheduler.serial.width for scenario in played)
    notes = (*told.notes, f"{KEY}; {KEY_OF_WIDTHS}" if widths else KEY)
    below = "".join(f"{note}\n" for note in notes)
    return f"{len(told.arrivals)} requests; a load takes: {loads}\n\n{side_by_side(results)}\n{below}"
