"""Measurements are counted in bounded space, forgotten in time, and answer with quantiles to 1 %."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.scheduling.sketches import LONGEST, SHORTEST, WINDOW, Distribution, Sketch

DURATIONS = st.floats(min_value=SHORTEST, max_value=LONGEST)


def sketch_of(*seconds: float) -> Sketch:
    sketch = Sketch()
    for each in seconds:
        sketch.add(each)
    return sketch


def known(sketch: Sketch) -> Distribution:
    distribution = sketch.distribution()
    assert distribution is not None
    return distribution


def test_nothing_is_known_before_something_was_measured() -> None:
    assert Sketch().distribution() is None


@pytest.mark.parametrize("nonsense", [-0.001, -1e9, math.nan, math.inf, -math.inf])
def test_what_no_clock_can_have_shown_is_not_counted(nonsense: float) -> None:
    assert sketch_of(nonsense).distribution() is None
    assert known(sketch_of(2.0, nonsense)).count == 1


def test_zero_and_a_century_are_counted_as_the_least_and_the_most() -> None:
    assert known(sketch_of(0.0)).quantile(0.5) == pytest.approx(SHORTEST, rel=0.011)
    assert known(sketch_of(3e9)).quantile(0.5) == pytest.approx(LONGEST, rel=0.011)


@settings(deadline=None)
@given(st.lists(DURATIONS, min_size=1, max_size=WINDOW), st.floats(0.001, 0.999))
def test_a_quantile_is_that_of_the_measurements_to_a_hundredth(seconds: list[float], q: float) -> None:
    exact = sorted(seconds)[math.ceil(q * len(seconds)) - 1]

    assert known(sketch_of(*seconds)).quantile(q) == pytest.approx(exact, rel=0.0101)


@settings(deadline=None)
@given(st.lists(DURATIONS, min_size=1, max_size=50))
def test_mean_and_variance_are_those_of_the_measurements_nearly(seconds: list[float]) -> None:
    mean = math.fsum(seconds) / len(seconds)
    square = math.fsum(each * each for each in seconds) / len(seconds)

    distribution = known(sketch_of(*seconds))

    assert distribution.mean == pytest.approx(mean, rel=0.0101)
    assert distribution.variance == pytest.approx(square - mean * mean, abs=0.05 * square)


def test_between_one_and_two_windows_count() -> None:
    sketch = Sketch()
    for number in range(7 * WINDOW):
        sketch.add(1.0)
        assert known(sketch).count <= 2 * WINDOW
        assert known(sketch).count >= min(number + 1, WINDOW)


def test_a_model_that_became_faster_is_believed_after_two_windows() -> None:
    sketch = sketch_of(*[100.0] * 10_000)

    for _ in range(WINDOW + 1):
        sketch.add(1.0)
    assert known(sketch).quantile(0.5) == pytest.approx(1.0, rel=0.02)

    for _ in range(WINDOW):
        sketch.add(1.0)
    assert known(sketch).quantile(0.99) == pytest.approx(1.0, rel=0.02)


def test_the_space_is_bounded_whatever_is_measured() -> None:
    rng = random.Random(7)

    sketch = sketch_of(*(10 ** rng.uniform(-12, 12) for _ in range(5000)))

    bins = len(sketch._current.bins) + len(sketch._previous.bins)
    assert bins < 2 * 1400


def test_one_outlier_moves_the_mean_but_neither_quantile() -> None:
    distribution = known(sketch_of(*[2.0] * 99, 86400.0))

    assert distribution.quantile(0.5) == pytest.approx(2.0, rel=0.011)
    assert distribution.quantile(0.9) == pytest.approx(2.0, rel=0.011)


def test_a_median_asked_after_every_measurement_is_that_of_almost_all_of_them() -> None:
    sketch = Sketch()
    assert sketch.median() is None

    for number in range(1, 301):
        sketch.add(float(number))
        if number <= WINDOW:
            assert sketch.median() == pytest.approx((number + 1) // 2, abs=0.2 + 0.03 * number)

    for _ in range(2 * WINDOW):
        sketch.add(5.0)
        sketch.median()
    assert sketch.median() == pytest.approx(5.0, rel=0.011)


def test_shares_are_the_middles_of_equal_parts() -> None:
    shares = known(sketch_of(*[1.0] * 75, *[10.0] * 25)).shares(4)

    assert shares == pytest.approx((1.0, 1.0, 1.0, 10.0), rel=0.011)


@settings(deadline=None)
@given(st.lists(DURATIONS, min_size=1, max_size=60), DURATIONS)
def test_what_is_left_is_that_of_the_longer_ones(seconds: list[float], elapsed: float) -> None:
    left = known(sketch_of(*seconds)).beyond(elapsed)

    surely = [each - elapsed for each in seconds if each > elapsed * 1.03]
    if surely:
        assert left.quantile(0.999) == pytest.approx(max(surely), abs=0.011 * (max(surely) + elapsed))
    assert left.quantile(0.5) >= 0.0
    assert left.quantile(0.9) >= left.quantile(0.5)
    assert all(share >= 0.0 for share in left.shares(64))


def test_the_rest_of_one_that_goes_on_longer_than_any_is_as_wide_as_their_tail() -> None:
    steady = known(sketch_of(*[960.0] * 200)).beyond(1000.0)
    spread = known(sketch_of(*[1.0] * 150, *[100.0] * 30, *[900.0] * 20)).beyond(1000.0)

    assert steady.count == spread.count == 0
    assert steady.mean == pytest.approx(10.0)  # a hundredth of what it has lasted
    assert spread.mean == pytest.approx(800.0, rel=0.02)  # the mean by which the longest exceed 100 s
    assert spread.quantile(0.5) == pytest.approx(spread.mean * math.log(2))
    assert spread.variance == pytest.approx(spread.mean**2)


def test_the_only_run_so_far_says_little_of_one_that_is_longer() -> None:
    assert known(sketch_of(10.0)).beyond(20.0).mean == pytest.approx(10.0)


def test_a_run_that_has_just_begun_is_a_whole_run() -> None:
    distribution = known(sketch_of(1.0, 2.0, 3.0))

    assert distribution.beyond(0.0) is distribution
