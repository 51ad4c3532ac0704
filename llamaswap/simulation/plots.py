"""Draw waits and trade-offs into a PNG or an SVG; the same numbers give the same SVG, byte for byte.

matplotlib is imported when something is drawn: nobody else needs it.  What the numbers mean is not known
here.
"""

from __future__ import annotations

import importlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llamaswap.simulation.records import Unusable

SUFFIXES = (".png", ".svg")
MOST_POINTS = 400
"""Points of one curve; nobody sees more, and an SVG holds each."""
LEAST_WAIT = 1.0
"""Seconds; what is shorter is drawn at the left edge of a logarithmic axis."""

# Colours that stay apart for colour-blind eyes, and in print.
COLOURS = ("#555555", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31")
_WIDTH, _HEIGHT = 3.1, 3.0  # inches, of one panel


class NoPlot(Unusable):
    """Nothing can be drawn; `str()` says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One setting in a picture of trade-offs."""

    x: float
    y: float
    front: bool = False  # no other one is better in every respect
    name: str = ""  # shown beside it


def check(path: Path) -> None:
    """Find out, before anything has been computed, whether a plot could be drawn there.

    Raises:
        NoPlot: there is no matplotlib, no such folder, or the name ends in neither `.png` nor `.svg`.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise NoPlot(f"{path}: a plot's name ends in {' or '.join(SUFFIXES)}")
    if not path.absolute().parent.is_dir():
        raise NoPlot(f"{path}: no such folder")
    _matplotlib()


def draw_waits(path: Path, waits: Mapping[str, Mapping[str, Sequence[float]]], title: str) -> None:
    """Draw how many requests had begun after how long: a panel for each band, a curve for each setting.

    Args:
        path: of the picture.
        waits: seconds by band and setting, in the order in which they are shown; empty bands are left out.
        title: above all panels.

    Raises:
        NoPlot: as for `check`, or the file can't be written.
    """
    told = {band: {name: one for name, one in by.items() if len(one)} for band, by in waits.items()}
    shown = {band: by for band, by in told.items() if by}
    names = list(dict.fromkeys(name for by in shown.values() for name in by))
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}
    pyplot = set_up_pyplot()
    size = (_WIDTH * max(1, len(shown)) + 0.4, _HEIGHT)
    figure, rows = pyplot.subplots(
        1, max(1, len(shown)), figsize=size, layout="constrained", squeeze=False, sharey=True
    )
    try:
        for axes, (band, by) in zip(rows[0], shown.items(), strict=False):
            _draw_band(axes, band, by, colours)
        rows[0][0].set_ylabel("share of requests that run by then")
        if names:
            rows[0][-1].legend(frameon=False, fontsize=8, loc="lower right")
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)
        _save(figure, path)
    finally:
        pyplot.close(figure)


def draw_front(path: Path, points: Sequence[Point], x_label: str, y_label: str, title: str) -> None:
    """Draw settings as points, further left and further down is better; both axes are waits in seconds.

    Raises:
        NoPlot: as for `check`, or the file can't be written.
    """
    pyplot = set_up_pyplot()
    figure, axes = pyplot.subplots(figsize=(6.4, 4.2), layout="constrained")
    try:
        for front, colour, label in (
            (False, "#bbbbbb", "beaten by another one"),
            (True, COLOURS[1], "not beaten"),
        ):
            shown = [point for point in points if point.front is front and not point.name]
            axes.scatter([p.x for p in shown], [p.y for p in shown], s=16, color=colour, label=label)
        for point in (point for point in points if point.name):
            axes.scatter([point.x], [point.y], s=36, marker="D", color=COLOURS[2])
            axes.annotate(
                point.name, (point.x, point.y), xytext=(6, 6), textcoords="offset points", fontsize=8
            )
        for axis, values in (("x", [p.x for p in points]), ("y", [p.y for p in points])):
            _set_seconds(axes, axis, values)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.set_title(title, loc="left", fontsize=10)
        axes.legend(frameon=False, fontsize=8)
        _save(figure, path)
    finally:
        pyplot.close(figure)


def curve(seconds: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the waits and shares of a cumulative curve, thinned to what can be seen."""
    ordered = array("d", sorted(seconds))
    count = len(ordered)
    places = sorted({round(step * (count - 1) / (MOST_POINTS - 1)) for step in range(MOST_POINTS)})
    return [max(LEAST_WAIT, ordered[place]) for place in places], [(place + 1) / count for place in places]


def tick_label(seconds: float) -> str:
    """A time on an axis: 5 s, 2 min, 3 h."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


_TICKS = (1, 10, 60, 600, 3600, 36000)
_FINE_TICKS = (1, 2, 5, 10, 20, 30, 60, 90, 120, 180, 300, 480, 720, 1200, 1800, 3600, 7200, 18000, 36000)
_ROOM = 1.25  # an axis goes on for so much beyond its outermost values


def _draw_band(axes: Any, band: str, by: Mapping[str, Sequence[float]], colours: Mapping[str, str]) -> None:
    for name, seconds in by.items():
        xs, ys = curve(seconds)
        axes.plot(xs, ys, drawstyle="steps-post", lw=1.4, color=colours[name], label=name)
    longest = max(10.0, *map(max, by.values()))
    axes.set_xscale("log")
    axes.set_xlim(LEAST_WAIT, longest * 1.1)
    axes.set_ylim(0, 1.01)
    axes.set_xticks(*_named(_TICKS, LEAST_WAIT, longest))
    axes.xaxis.set_minor_formatter(lambda _value, _place: "")
    axes.set_xlabel("wait")
    axes.set_title(band, loc="left", fontsize=9)


def _set_seconds(axes: Any, axis: str, values: Sequence[float]) -> None:
    """Make an axis logarithmic, from the smallest to the largest value, with times that people say."""
    least, most = max(LEAST_WAIT, min(values)) / _ROOM, max(LEAST_WAIT, *values) * _ROOM
    getattr(axes, f"set_{axis}scale")("log")
    getattr(axes, f"set_{axis}lim")(least, most)
    getattr(axes, f"set_{axis}ticks")(*_named(_FINE_TICKS, least, most))
    getattr(axes, f"{axis}axis").set_minor_formatter(lambda _value, _place: "")


def _named(ticks: Sequence[float], least: float, most: float) -> tuple[list[float], list[str]]:
    shown = [tick for tick in ticks if least <= tick <= most]
    return shown, [tick_label(tick) for tick in shown]


def _matplotlib() -> Any:
    try:
        return importlib.import_module("matplotlib")
    except ImportError as error:
        raise NoPlot("plots need matplotlib: pip install 'llamaswap[plots]'") from error


def set_up_pyplot() -> Any:
    """Return pyplot, set up so that the same numbers give the same file.

    Raises:
        NoPlot: there is no matplotlib.
    """
    matplotlib = _matplotlib()
    matplotlib.use("Agg")
    matplotlib.rcParams.update(
        {
            "svg.hashsalt": "llamaswap",
            "svg.fonttype": "path",
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#e5e5e5",
        }
    )
    return importlib.import_module("matplotlib.pyplot")


def _save(figure: Any, path: Path) -> None:
    kind = path.suffix.lower().removeprefix(".")
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    try:
        figure.savefig(path, format=kind, metadata=metadata, dpi=150)
    except OSError as error:
        raise NoPlot(f"{path}: {error.strerror}") from error
