"""Waits and their quantiles."""

from __future__ import annotations

import pickle
from array import array
from fractions import Fraction
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.simulation.engine import simulate
from llamaswap.simulation.results import Waits, quantile, waits_of
from llamaswap.simulation.scenario import box_of
from support.simulation_traces import afternoon


def test_waits_of_several_kinds_are_counted_together() -> None:
    waits = waits_of(array("d", [3.0, 1.0]), array("d"), array("d", [2.0]))

    assert waits == Waits(count=3, mean=2.0, p50=2.0, p95=3.0, max=3.0)


def test_nobody_waited_is_all_zeros() -> None:
    assert waits_of() == waits_of(array("d")) == Waits()


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60), st.sampled_from((0.5, 0.95, 1.0)))
def test_a_quantile_is_the_smallest_that_so_many_do_not_exceed(values: list[float], share: float) -> None:
    found = quantile(sorted(values), share)

    def reached(limit: float) -> Fraction:
        return Fraction(sum(value <= limit for value in values), len(values))

    assert found in values
    assert reached(found) >= Fraction(str(share))
    below = max((value for value in values if value < found), default=-inf)
    assert reached(below) < Fraction(str(share))


def test_the_parts_of_the_time_add_up_and_results_travel_between_processes() -> None:
    results = simulate(afternoon(200), box_of(f"m{n}" for n in range(4)))

    assert results.running + results.loading + results.idle == pytest.approx(results.makespan)
    assert results.loading_share == results.loading / results.makespan > 0.0
    assert sum(results.loads.values()) > 0
    assert pickle.loads(pickle.dumps(results)) == results


def test_a_box_that_nobody_asked_has_no_share_of_loading() -> None:
    results = simulate([], box_of("A"))

    assert (results.requests, results.makespan) == (0, 0.0)
    assert results.loading_share == 0.0
