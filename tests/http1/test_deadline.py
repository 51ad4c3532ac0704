"""Movable deadlines."""

from __future__ import annotations

from twisted.internet.task import Clock

from llamaswap.http1.deadline import Deadline


def test_a_deadline_moved_further_away_costs_no_new_timer() -> None:
    clock, fired = Clock(), list[float]()
    deadline = Deadline(clock, lambda: fired.append(clock.seconds()))
    deadline.set(10)
    (timer,) = clock.getDelayedCalls()

    clock.advance(6)
    deadline.set(10)
    assert clock.getDelayedCalls() == [timer]

    clock.advance(9.9)
    assert fired == []
    clock.advance(0.1)
    assert fired == [16]


def test_a_deadline_moved_closer_is_kept() -> None:
    clock, fired = Clock(), list[float]()
    deadline = Deadline(clock, lambda: fired.append(clock.seconds()))
    deadline.set(100)
    deadline.set(5)

    clock.advance(5)
    assert fired == [5]
    assert clock.getDelayedCalls() == []


def test_a_cleared_deadline_does_nothing_and_can_be_set_again() -> None:
    clock, fired = Clock(), list[float]()
    deadline = Deadline(clock, lambda: fired.append(clock.seconds()))
    deadline.set(5)
    deadline.clear()
    clock.advance(6)
    assert fired == []
    assert clock.getDelayedCalls() == []

    deadline.set(5)
    clock.advance(5)
    assert fired == [11]


def test_a_stopped_deadline_leaves_no_timer_behind() -> None:
    clock = Clock()
    deadline = Deadline(clock, lambda: None)
    deadline.set(5)
    deadline.stop()
    deadline.stop()

    assert clock.getDelayedCalls() == []
