"""A few equally likely futures say how a sum of uncertain times spreads."""

from __future__ import annotations

import math
from statistics import fmean, pvariance

import pytest

from llamaswap.scheduling.samples import (
    FUTURES,
    NOW,
    Slots,
    Times,
    after,
    after_many,
    dealt,
    latest,
    median_and_p90,
)

EXPONENTIAL: Times = tuple(-math.log(1 - (index + 0.5) / FUTURES) for index in range(FUTURES))
VARIANCE = pvariance(EXPONENTIAL)


def steady(seconds: float) -> Times:
    return (seconds,) * FUTURES


def summed(many: int, first: int = 1) -> Times:
    times = NOW
    for turn in range(first, first + many):
        times = after(times, dealt(EXPONENTIAL, turn))
    return times


def test_each_turn_deals_all_shares_in_an_order_of_its_own() -> None:
    hands = {dealt(EXPONENTIAL, turn) for turn in range(2000)}

    assert len(hands) == 2000
    assert all(sorted(hand) == sorted(EXPONENTIAL) for hand in hands)


def test_a_single_time_keeps_its_quantiles() -> None:
    p50, p90 = median_and_p90(summed(1))

    assert p50 == pytest.approx(math.log(2), rel=0.02)
    assert p90 == pytest.approx(math.log(10), rel=0.03)


@pytest.mark.parametrize("many", [10, 100, 1000, 4000])
def test_a_sum_has_the_mean_and_about_the_variance_of_independent_terms(many: int) -> None:
    spreads = [pvariance(summed(many, first)) for first in range(1, 1000, 100)]

    assert fmean(summed(many)) == pytest.approx(many * fmean(EXPONENTIAL))
    assert fmean(spreads) == pytest.approx(many * VARIANCE, rel=0.35)


def test_many_at_once_spread_like_a_normal_sum_and_never_end_before_they_begin() -> None:
    p50, p90 = median_and_p90(after_many(steady(5.0), 100.0, 400.0, 1))

    assert p50 == pytest.approx(105.0, abs=0.5)
    assert p90 == pytest.approx(105.0 + 1.2816 * 20.0, abs=1.0)
    assert min(after_many(steady(5.0), 1.0, 400.0, 1)) == 5.0


def test_the_later_of_two_is_taken_in_each_future() -> None:
    one, other = dealt(EXPONENTIAL, 1), dealt(EXPONENTIAL, 2)

    both = latest(one, other)

    assert all(moment == max(pair) for moment, *pair in zip(both, one, other, strict=True))


def test_slots_are_taken_as_they_become_free() -> None:
    slots = Slots([steady(4.0)], 2)

    assert slots.take(NOW, steady(10.0)) == steady(0.0)  # the free one, until 10
    assert slots.take(NOW, steady(1.0)) == steady(4.0)  # until 5
    assert slots.take(steady(4.5), steady(1.0)) == steady(5.0)  # until 6
    assert slots.take(steady(8.0), steady(1.0)) == steady(8.0)  # no sooner than that
    assert slots.all_ended() == steady(10.0)
