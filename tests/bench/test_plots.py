"""Plots: what is decided before anything is drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.plots import colours_of, draw, scale_of, tick_label


def test_what_spans_orders_of_magnitude_is_drawn_on_a_logarithmic_axis() -> None:
    assert scale_of([10, 100, 1000]) == "log"
    assert scale_of([100, 110, 140]) == "linear"


def test_nothing_that_reaches_zero_is_drawn_on_a_logarithmic_axis() -> None:
    assert scale_of([0, 10, 100_000]) == "linear"
    assert scale_of([]) == "linear"


def test_a_contestant_has_the_same_colour_in_every_plot() -> None:
    alone, together = colours_of(["nginx"]), colours_of(["a peer", "llamaswap", "nginx"])

    assert alone["nginx"] == together["nginx"]
    assert len(set(together.values())) == 3


def test_strangers_get_colours_that_differ() -> None:
    assert len(set(colours_of(["mean", "99 of 100", "direct"]).values())) == 3


@pytest.mark.parametrize(
    ("value", "label"),
    [(0.05, "0.05"), (20, "20"), (1000, "1 000"), (100_000, "100 000"), (20_000_000, "20 M")],
)
def test_numbers_are_written_as_people_read_them(value: float, label: str) -> None:
    assert tick_label(value) == label


def test_without_curves_there_is_nothing_to_draw_and_no_folder(tmp_path: Path) -> None:
    assert draw([], tmp_path / "plots") == []
    assert not (tmp_path / "plots").exists()
