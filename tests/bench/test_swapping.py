"""Swaps of the bench: their parts."""

from __future__ import annotations

from bench.swapping import Swap


def test_the_parts_of_a_swap_are_all_of_it() -> None:
    assert Swap(stop=0.25, load=0.5, answer=0.125).total == 0.875
