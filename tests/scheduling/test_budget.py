"""The swap budget: what it pays for, and when it begins anew."""

from __future__ import annotations

import pytest

from llamaswap.scheduling.budget import SwapBudget
from llamaswap.scheduling.estimates import Estimates
from support.scheduling_setup import Known


def budget(seconds: float, **runs: float) -> SwapBudget:
    return SwapBudget(seconds, Known(runs))


def test_it_pays_for_what_fits_and_no_more() -> None:
    assert budget(10.0, a=10.0, b=10.000001, c=2.5).affordable("abc") == {"a": 10_000_000, "c": 2_500_000}


def test_what_is_spent_is_gone_until_a_load_begins() -> None:
    spending = budget(10.0, a=6.0)

    spending.spend(spending.affordable("a")["a"])
    assert (spending.affordable("a"), spending.left, spending.spent) == ({}, 4.0, 6.0)

    spending.renew()
    assert (spending.affordable("a"), spending.left, spending.spent) == ({"a": 6_000_000}, 10.0, 0.0)


def test_what_was_never_measured_gets_nothing() -> None:
    assert SwapBudget(1000.0, Estimates()).affordable("a") == {}


def test_a_job_of_no_time_costs_something_all_the_same() -> None:
    assert budget(1.0, a=0.0).affordable("a") == {"a": 1}


def test_only_those_who_are_asked_about_are_told_of() -> None:
    assert budget(10.0, a=1.0, b=1.0).affordable({"b"}).keys() == {"b"}


def test_it_goes_by_the_median_of_what_was_measured() -> None:
    estimates = Estimates()
    for seconds in (1.0, 4.0, 100.0):
        estimates.ran("a", seconds)

    costs = SwapBudget(5.0, estimates).affordable("a")

    assert costs["a"] == pytest.approx(4_000_000, rel=0.02)
