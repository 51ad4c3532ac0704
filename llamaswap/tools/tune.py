"""`llama-swap tune`: many settings on one trace, those worth having, and one to begin with.

Which one is recommended, and in which words, is `llamaswap.simulation.advice`'s business.
"""

from __future__ import annotations

import argparse
import json
import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from llamaswap.config.model import SerialSettings
from llamaswap.config.scheduler import LARGEST_BONUS
from llamaswap.simulation.advice import TOLERANCE, Advice, advise
from llamaswap.simulation.plots import Point, draw_front
from llamaswap.simulation.progress import bar
from llamaswap.simulation.records import BadLine, number
from llamaswap.simulation.results import Results
from llamaswap.simulation.scenario import Scenario
from llamaswap.simulation.tuning import Candidate, Grid, Objectives, Tuning, objectives_of, tune
from llamaswap.tools import replay
from llamaswap.tools.contenders import with_changes, with_parallel
from llamaswap.tools.tables import grid, seconds

_DEFAULT = Grid()
_WIDTH = 100  # characters of a line of words


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command understands."""
    replay.add_arguments(parser)
    for flag, values, unit in (
        ("--divisors", _DEFAULT.aging_divisors, "agingDivisor"),
        ("--bonuses", _DEFAULT.swap_affinity_bonuses, "swapAffinityBonus"),
        ("--budgets", _DEFAULT.swap_budgets, "swapBudgetSeconds"),
    ):
        shown = ",".join(f"{value:g}" for value in values)
        kind = _wholes if unit == "swapAffinityBonus" else _numbers
        parser.add_argument(
            flag, metavar="A,B", type=kind, default=values, help=f"values of {unit} to try ({shown})"
        )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change a setting beforehand: width.MODEL",
    )
    parser.add_argument(
        "--longest-batch",
        action="store_true",
        help="judge batch by its longest wait, not its 95th percentile",
    )
    parser.add_argument(
        "--tolerance",
        type=_share,
        default=TOLERANCE,
        help=f"share of a best wait that may be given up for the next band's ({TOLERANCE:g})",
    )
    parser.add_argument(
        "--workers", type=_workers, default=os.cpu_count() or 1, help="processes (one for each core)"
    )


def run(options: argparse.Namespace, out: TextIO, err: TextIO, environ: Mapping[str, str]) -> None:
    """Try every combination, and write the front, the recommendation and what to paste.

    Raises:
        Unusable, ConfigRejected: something that the command line names can't be used.
    """
    told = replay.read(options, environ, err)
    with bar(err, "settings", many=False) as progress:
        tuning = tune(
            told.arrivals,
            _box(told.box, options.set),
            _values(options),
            longest_batch=options.longest_batch,
            workers=options.workers,
            progress=progress,
        )
    advice = advise(tuning, tolerance=options.tolerance, longest_batch=options.longest_batch)
    if options.plot is not None:
        _draw(options.plot, tuning, advice)
    if options.json:
        out.write(json.dumps(_facts(tuning, advice, told.notes), indent=2) + "\n")
    else:
        notes = "".join(f"{note}\n" for note in told.notes)
        out.write(notes + _text(tuning, advice, longest_batch=options.longest_batch))


def _box(box: Scenario, changes: Sequence[str]) -> Scenario:
    """The box with settings that hold for all that is tried, unless they are what is tried."""
    serial = with_changes(box.scheduler.serial, box.config, changes, "--set")
    changed = replace(box.scheduler, serial=serial)
    return with_parallel(box, [changed]).under(changed)


def _values(options: argparse.Namespace) -> Grid:
    return Grid(
        aging_divisors=options.divisors, swap_affinity_bonuses=options.bonuses, swap_budgets=options.budgets
    )


def _text(tuning: Tuning, advice: Advice, *, longest_batch: bool) -> str:
    batch = "batch longest" if longest_batch else "batch p95"
    titles = ("setting", "interactive p95", "normal p95", batch, "swaps", "lost to loads")
    rows = [
        _row(
            tuning.baseline.scenario,
            objectives_of(tuning.baseline, longest_batch=longest_batch),
            tuning.baseline,
        ),
        _row(f"{tuning.current.name} (now)", tuning.current.objectives, tuning.current.results),
        *(_row(one.name, one.objectives, one.results) for one in tuning.front),
    ]
    words = "".join(f"{textwrap.fill(sentence, _WIDTH)}\n" for sentence in advice.words)
    key = "Settings: agingDivisor/swapAffinityBonus/swapBudgetSeconds; waits in seconds."
    return f"{grid(titles, rows)}\n{key}\n\n{words}\n{snippet(advice.choice.settings)}"


def _row(name: str, objectives: Objectives, results: Results) -> tuple[str, ...]:
    waits = (objectives.interactive, objectives.normal, objectives.batch)
    return (name, *map(seconds, waits), str(results.swaps), f"{results.loading_share:.0%}")


def snippet(settings: SerialSettings) -> str:
    """Return what to paste into a configuration."""
    lines = (
        f"agingDivisor: {settings.aging_divisor:g}",
        f"swapAffinityBonus: {settings.swap_affinity_bonus}",
        f"swapBudgetSeconds: {settings.swap_budget:g}",
        *([f"width: {json.dumps(dict(settings.width))}"] if settings.width else []),
    )
    head = "routing:\n  scheduler:\n    use: serial\n    settings:\n      serial:\n"
    return head + "".join(f"        {line}\n" for line in lines)


def _facts(tuning: Tuning, advice: Advice, notes: Sequence[str]) -> dict[str, object]:
    front = {id(candidate) for candidate in tuning.front}
    return {
        "tried": [{**_candidate(one), "front": id(one) in front} for one in tuning.tried],
        "now": _candidate(tuning.current),
        "fifo": _rounded(objectives_of(tuning.baseline)),
        "recommended": _candidate(advice.choice),
        "words": list(advice.words),
        "notes": list(notes),
    }


def _candidate(candidate: Candidate) -> dict[str, object]:
    settings = candidate.settings
    return {
        "name": candidate.name,
        "agingDivisor": settings.aging_divisor,
        "swapAffinityBonus": settings.swap_affinity_bonus,
        "swapBudgetSeconds": settings.swap_budget,
        **_rounded(candidate.objectives),
    }


def _rounded(objectives: Objectives) -> dict[str, float]:
    return {name: round(value, 3) for name, value in objectives._asdict().items()}


def _draw(path: Path, tuning: Tuning, advice: Advice) -> None:
    front = {id(candidate) for candidate in tuning.front}
    points = [_point(one.objectives, front=id(one) in front) for one in tuning.tried]
    named = {
        "fifo": objectives_of(tuning.baseline),
        f"now: {tuning.current.name}": tuning.current.objectives,
        f"recommended: {advice.choice.name}": advice.choice.objectives,
    }
    points += [replace(_point(objectives), name=name) for name, objectives in named.items()]
    title = f"{len(tuning.tried)} settings, {len(front)} of them not beaten by another one"
    draw_front(path, points, "interactive wait, 95th percentile", "normal wait, 95th percentile", title)


def _point(objectives: Objectives, *, front: bool = False) -> Point:
    return Point(x=objectives.interactive, y=objectives.normal, front=front)


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(number(one, "") for one in text.split(","))
    except BadLine:
        raise argparse.ArgumentTypeError(f"expected numbers from 0, got {text!r}") from None


def _share(text: str) -> float:
    return _numbers(text)[0]


def _wholes(text: str) -> tuple[int, ...]:
    values = text.split(",")
    if not all(value.isdecimal() and int(value) <= LARGEST_BONUS for value in values):
        raise argparse.ArgumentTypeError(f"expected whole numbers from 0 to {LARGEST_BONUS}, got {text!r}")
    return tuple(map(int, values))


def _workers(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, got {text!r}")
    return int(text)
