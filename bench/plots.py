"""Draw growth curves, one SVG each.

matplotlib is imported when something is drawn: only the bench needs it.  What
the curves mean is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.figures import Curve
from llamaswap.simulation.plots import set_up_pyplot

SIZE = (6.0, 3.6)  # inches
WIDE = 30.0
"""The largest value of an axis is so many times the smallest: then it is logarithmic."""

# Colours that stay apart for colour-blind eyes, and in print; ours comes first.
COLOURS = {
    "llamaswap": "#d55e00",
    "nginx": "#0072b2",
    "nginx-memory": "#56b4e9",
    "haproxy": "#009e73",
    "direct": "#555555",
}
OTHERS = ("#cc79a7", "#e69f00", "#8c6d31", "#000000")


def draw(curves: Iterable[Curve], folder: Path) -> list[Path]:
    """Draw each curve into `folder`, which is made where it is missing.

    Returns:
        The files, in order: the curve's name and `.svg`.

    Raises:
        NoPlot: there is no matplotlib.
    """
    drawn = list(curves)
    if not drawn:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    pyplot = set_up_pyplot()
    return [_draw_one(pyplot, curve, folder / f"{curve.name}.svg") for curve in drawn]


def scale_of(values: Iterable[float]) -> str:
    """The scale that shows these values: `log` where they span much, else `linear`."""
    known = list(values)
    if not known or min(known) <= 0:
        return "linear"
    return "log" if max(known) / min(known) > WIDE else "linear"


def colours_of(names: Sequence[str]) -> dict[str, str]:
    """A colour for each series; those that have one of their own keep it in every plot."""
    strangers = [name for name in names if name not in COLOURS]
    given = {name: OTHERS[place % len(OTHERS)] for place, name in enumerate(strangers)}
    return {name: COLOURS.get(name) or given[name] for name in names}


def tick_label(value: float) -> str:
    """A number on an axis: 0.05, 20, 1 000, 20 M."""
    if abs(value) >= 1_000_000:
        return f"{value / 1_000_000:g} M"
    if abs(value) >= 1_000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:g}"


def _draw_one(pyplot: Any, curve: Curve, path: Path) -> Path:
    figure, axes = pyplot.subplots(figsize=SIZE, layout="constrained")
    try:
        colours = colours_of(list(curve.series))
        for name, points in curve.series.items():
            xs, ys = zip(*sorted(points), strict=True)
            axes.plot(xs, ys, marker="o", markersize=3.5, linewidth=1.4, label=name, color=colours[name])
        axes.set_title(curve.title, loc="left", fontsize=10)
        axes.set_xlabel(curve.x_label)
        axes.set_ylabel(curve.y_label)
        _set_scales(axes, curve)
        if len(curve.series) > 1:
            axes.legend(frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None})
    finally:
        pyplot.close(figure)
    return path


def _set_scales(axes: Any, curve: Curve) -> None:
    """Logarithmic where much is spanned; a linear height starts at 0, so that no slope is exaggerated."""
    points = [point for series in curve.series.values() for point in series]
    axes.set_xscale(scale_of(x for x, _ in points))
    height = scale_of(y for _, y in points)
    axes.set_yscale(height)
    if height == "linear":
        axes.set_ylim(bottom=0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _place: tick_label(value))
        axis.set_minor_formatter(lambda _value, _place: "")
