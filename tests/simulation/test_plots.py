"""Pictures: drawn where they can be, the same from the same numbers."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from llamaswap.simulation.plots import (
    MOST_POINTS,
    NoPlot,
    Point,
    check,
    curve,
    draw_front,
    draw_waits,
    tick_label,
)

WAITS: dict[str, dict[str, list[float]]] = {
    "interactive": {"fifo": [0.0, 3.0, 700.0], "serial": [1.0]},
    "normal": {"fifo": []},
    "batch": {},
}
POINTS = [Point(x=85, y=350), Point(x=90, y=180, front=True), Point(x=0, y=700, name="fifo")]


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_the_same_numbers_give_the_same_picture(tmp_path: Path, suffix: str) -> None:
    files = [tmp_path / f"{name}{suffix}" for name in ("a", "b", "c", "d")]

    for file in files[:2]:
        draw_waits(file, WAITS, "waits")
    for file in files[2:]:
        draw_front(file, POINTS, "interactive", "normal", "settings")

    first, second, third, fourth = (file.read_bytes() for file in files)
    assert (first, third) == (second, fourth)
    assert first.startswith(b"\x89PNG" if suffix == ".png" else b"<?xml")
    assert first != third


def test_a_picture_of_nothing_can_be_drawn(tmp_path: Path) -> None:
    draw_waits(tmp_path / "a.svg", {"batch": {"fifo": ()}}, "nothing")

    assert (tmp_path / "a.svg").stat().st_size


def test_a_curve_keeps_its_ends_and_no_more_points_than_can_be_seen() -> None:
    xs, ys = curve([float(value) for value in range(10_000)])

    assert len(xs) == len(ys) == MOST_POINTS
    assert (xs[0], xs[-1], ys[-1]) == (1.0, 9999.0, 1.0)
    assert ys[0] == 1 / 10_000
    assert curve([5.0]) == ([5.0], [1.0])


@pytest.mark.parametrize(
    ("name", "why"), [("a.gif", "ends in .png or .svg"), ("plot", "ends in"), ("no/a.svg", "no such folder")]
)
def test_a_place_where_nothing_can_be_drawn_is_named_before_the_work(
    tmp_path: Path, name: str, why: str
) -> None:
    with pytest.raises(NoPlot, match=why):
        check(tmp_path / name)


def test_without_matplotlib_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    with pytest.raises(NoPlot, match=r"pip install 'llamaswap\[plots\]'"):
        check(tmp_path / "a.svg")


def test_nobody_needs_matplotlib_until_something_is_drawn() -> None:
    plots = importlib.import_module("llamaswap.simulation.plots")

    assert not hasattr(plots, "matplotlib")


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.svg").mkdir()

    with pytest.raises(NoPlot, match="Is a directory"):
        draw_waits(tmp_path / "a.svg", WAITS, "waits")


def test_times_are_written_as_people_say_them() -> None:
    assert [tick_label(value) for value in (1, 45, 60, 90, 7200)] == [
        "1 s",
        "45 s",
        "1 min",
        "1.5 min",
        "2 h",
    ]
