"""The crowd of the bench: it measures what it says."""

from __future__ import annotations

from bench.crowd import Crowd


def test_each_dispatch_takes_one_from_the_crowd_and_lets_one_join() -> None:
    crowd = Crowd(models=3, loaded=2, waiting=7)

    for _ in range(20):
        assert crowd.dispatch() > 0
        assert crowd.waiting() == 7


def test_a_pace_orders_its_numbers() -> None:
    pace = Crowd(models=2, loaded=2, waiting=3).pace(50)

    assert 0 < pace.median <= pace.p99
    assert pace.mean > 0
