"""Arrivals are values."""

from __future__ import annotations

import pickle

import pytest

from llamaswap.simulation.arrivals import Arrival


def test_an_arrival_is_a_value_that_travels_between_processes() -> None:
    one = Arrival(at=1.5, model="qwen", priority=-98, run=3.0, user="ann", cancel_after=30.0)

    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(AttributeError):
        one.at = 2.0  # type: ignore[misc]  # that it cannot be set is what is tested


def test_nobody_leaves_unless_it_is_said() -> None:
    assert Arrival(at=0.0, model="qwen", priority=0, run=1.0).cancel_after is None
