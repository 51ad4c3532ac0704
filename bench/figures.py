"""What was measured, what was promised of it, and how both are written down.

Knows numbers, ratios and tables; not where the numbers come from.
"""

from __future__ import annotations

import json
import math
import platform
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SUBJECT = "llamaswap"
"""The contestant that promises are about, unless a target says otherwise."""

CAUTION = (
    "Absolute numbers are those of this machine at this hour; what counts is the ratio of contestants\n"
    "that were measured in the same round.  Ratios: median of the rounds (lowest .. highest)."
)


@dataclass(frozen=True, slots=True)
class Target:
    """A promise: at most `factor` times the reference's figure, or at most `limit` in the figure's unit."""

    wording: str
    reference: str = ""  # a contestant, for `factor`
    factor: float | None = None
    limit: float | None = None
    subject: str = SUBJECT


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a promise."""

    target: Target
    value: float | None  # a ratio, or an absolute value where the target has a limit; None = not measured
    met: bool | None  # None = not measured


@dataclass(slots=True)
class Figure:
    """One quantity, for several contestants, less being better.

    `samples` holds one value a round for each contestant, in `unit`.  The
    n-th values of all contestants belong to the same round.
    """

    name: str
    title: str
    unit: str
    samples: dict[str, list[float]] = field(default_factory=dict)
    targets: tuple[Target, ...] = ()
    reference: str = ""  # whom ratios are against; "" = the first target's, if any
    notes: tuple[str, ...] = ()

    def add(self, contestant: str, value: float) -> None:
        """Append what a contestant had in this round."""
        self.samples.setdefault(contestant, []).append(value)

    def median(self, contestant: str) -> float:
        """Return the median of a contestant's rounds.

        Raises:
            KeyError: it took no part.
        """
        return statistics.median(self.samples[contestant])

    def ratio(self, contestant: str, reference: str = "") -> tuple[float, float, float]:
        """Return (median, lowest, highest) of the ratios to the reference within one round.

        A round in which the reference's value was not above 0 (a difference
        can be that, on a noisy machine) counts as infinite.

        Raises:
            KeyError: one of them took no part, or nobody is the reference.
        """
        below = self.samples[reference or self.against()]
        ratios = [
            mine / theirs if theirs > 0 else math.inf
            for mine, theirs in zip(self.samples[contestant], below, strict=True)
        ]
        return statistics.median(ratios), min(ratios), max(ratios)

    def against(self) -> str:
        """Return whom ratios are against, '' for nobody."""
        return self.reference or next((target.reference for target in self.targets), "")

    def verdict(self) -> tuple[Verdict, ...]:
        """Return what became of each promise."""
        return tuple(self._judge(target) for target in self.targets)

    def _judge(self, target: Target) -> Verdict:
        if target.subject not in self.samples:
            return Verdict(target, None, None)
        if target.limit is not None:
            value = self.median(target.subject)
            return Verdict(target, value, value <= target.limit)
        if target.factor is None or target.reference not in self.samples:
            return Verdict(target, None, None)
        value = self.ratio(target.subject, target.reference)[0]
        return Verdict(target, value, value <= target.factor)


@dataclass(slots=True)
class Curve:
    """How something grows: for each contestant, points (x, y) with rising x."""

    name: str
    title: str
    x_label: str
    y_label: str
    series: dict[str, list[tuple[float, float]]] = field(default_factory=dict)


def write_results(path: Path, figures: Sequence[Figure], curves: Sequence[Curve], **run: int | str) -> None:
    """Write everything as one JSON document; numbers that JSON does not have become null.

    Args:
        run: what else there is to say of how it was measured.
    """
    document = {
        "machine": machine(),
        "run": run,
        "figures": {figure.name: _figure_fields(figure) for figure in figures},
        "curves": {
            curve.name: {
                "title": curve.title,
                "x_label": curve.x_label,
                "y_label": curve.y_label,
                "series": curve.series,
            }
            for curve in curves
        },
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n")


def machine() -> Mapping[str, str | int]:
    """Return what the numbers depend on most."""
    models = [
        line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")
    ]
    return {
        "processor": models[0] if models else platform.processor(),
        "processors": len(models),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def _figure_fields(figure: Figure) -> dict[str, Any]:
    return {
        "title": figure.title,
        "unit": figure.unit,
        "reference": figure.against(),
        "contestants": {name: _contestant_fields(figure, name) for name in figure.samples},
        "targets": [
            {"wording": one.target.wording, "value": finite(one.value), "met": one.met}
            for one in figure.verdict()
        ],
        "notes": list(figure.notes),
    }


def _contestant_fields(figure: Figure, name: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"median": finite(figure.median(name)), "rounds": figure.samples[name]}
    if figure.against() in figure.samples:
        median, low, high = map(finite, figure.ratio(name))
        fields["ratio"] = {"median": median, "low": low, "high": high}
    return fields


def finite(value: float | None) -> float | None:
    """Return a number that JSON can hold, or None."""
    return value if value is not None and math.isfinite(value) else None


def print_table(figures: Sequence[Figure]) -> None:
    """Print all figures for a person, each with its promises."""
    print(CAUTION)
    for figure in figures:
        print()
        print("\n".join(table_lines(figure)))


def table_lines(figure: Figure) -> Iterator[str]:
    """Return one figure's lines."""
    yield f"{figure.title} [{figure.name}], {figure.unit}"
    for name in figure.samples:
        line = f"  {name:<16} {figure.median(name):>12.4g}"
        if figure.against() in figure.samples:
            median, low, high = figure.ratio(name)
            line += f"   {median:6.2f} x {figure.against()} ({low:.2f} .. {high:.2f})"
        yield line
    for one in figure.verdict():
        yield f"  {_mark(one)}: {one.target.wording}"
    for note in figure.notes:
        yield f"  {note}"


def _mark(verdict: Verdict) -> str:
    if verdict.value is None:
        return "not measured"
    return f"{'kept' if verdict.met else 'MISSED'} with {verdict.value:.3g}"
