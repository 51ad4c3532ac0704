"""Estimates know per model how long runs and loads take, and nothing of models that are gone."""

from __future__ import annotations

import pytest

from llamaswap.scheduling.estimates import Estimates, Spread


def test_a_model_that_was_never_measured_is_unknown() -> None:
    estimates = Estimates()
    estimates.loaded("A", 3.0)

    assert estimates.run("A") is None
    assert estimates.load("B") is None
    assert estimates.expected_run("A") is None
    assert estimates.remaining("A", 1.0) is None
    assert estimates.remaining_load("B", 1.0) is None


def test_runs_and_loads_of_each_model_are_kept_apart() -> None:
    estimates = Estimates()
    estimates.ran("A", 1.0)
    estimates.loaded("A", 20.0)
    estimates.ran("B", 300.0)

    medians = [each and each.p50 for each in (estimates.run("A"), estimates.load("A"), estimates.run("B"))]

    assert medians == pytest.approx([1.0, 20.0, 300.0], rel=0.011)


def test_of_one_measurement_all_numbers_are_that_one() -> None:
    estimates = Estimates()
    estimates.ran("A", 7.0)

    run = estimates.run("A")

    assert run is not None
    assert run == Spread(count=1, mean=run.p50, variance=0.0, p50=run.p50, p90=run.p50)


def test_the_expected_run_is_the_median() -> None:
    estimates = Estimates()
    for seconds in (1.0, 2.0, 900.0):
        estimates.ran("A", seconds)

    assert estimates.expected_run("A") == pytest.approx(2.0, rel=0.011)


def test_each_measurement_counts_at_once() -> None:
    estimates = Estimates()
    for count in range(1, 200):
        estimates.ran("A", float(count))
        run = estimates.run("A")
        assert run is not None
        assert run.count == count
        assert run.p50 == pytest.approx((count + 1) // 2, rel=0.011)


def test_what_remains_shrinks_as_a_run_of_known_length_goes_on() -> None:
    estimates = Estimates()
    estimates.seed("A", [60.0] * 50, [8.0] * 50)

    left = [estimates.remaining("A", elapsed) for elapsed in (0.0, 20.0, 40.0)]
    loading = estimates.remaining_load("A", 5.0)

    assert [spread.p50 for spread in left if spread] == pytest.approx([60.0, 40.0, 20.0], abs=0.6)
    assert loading is not None
    assert loading.p90 == pytest.approx(3.0, abs=0.1)


def test_a_clock_that_was_set_back_teaches_nothing() -> None:
    estimates = Estimates()
    estimates.ran("A", -3600.0)

    assert estimates.run("A") is None
    assert estimates.expected_run("A") is None


def test_what_was_measured_before_a_restart_counts_in_its_order() -> None:
    estimates = Estimates()
    estimates.seed("A", [100.0] * 1000 + [1.0] * 600, [5.0])

    assert estimates.expected_run("A") == pytest.approx(1.0, rel=0.011)
    assert estimates.load("A") is not None


def test_models_that_are_gone_from_the_configuration_are_forgotten() -> None:
    estimates = Estimates()
    for model in "ABC":
        estimates.seed(model, [1.0], [2.0])

    estimates.keep(["B"])

    assert [model for model in "ABC" if estimates.run(model)] == ["B"]
    assert [model for model in "ABC" if estimates.load(model)] == ["B"]
