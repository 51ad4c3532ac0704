"""When a server counts as idle for too long."""

from __future__ import annotations

import pytest
from twisted.internet.task import Clock

from llamaswap.processes.idling import IdleTimer


class Idle:
    """A timer with a note of when it expired."""

    def __init__(self, ttl: float) -> None:
        self.clock = Clock()
        self.allowed = True
        self.expired: list[float] = []
        self.timer = IdleTimer(
            self.clock, ttl, lambda: self.allowed, lambda: self.expired.append(self.clock.seconds())
        )


def test_it_expires_its_time_after_the_start() -> None:
    idle = Idle(5.0)
    idle.timer.start()

    idle.clock.pump([1.0] * 10)

    assert idle.expired == [5.0]
    assert idle.clock.getDelayedCalls() == []


@pytest.mark.parametrize("ttl", [0.0, -1.0])
def test_without_a_ttl_it_never_does(ttl: float) -> None:
    idle = Idle(ttl)

    idle.timer.start()

    assert idle.clock.getDelayedCalls() == []


def test_a_use_however_long_puts_it_off() -> None:
    idle = Idle(5.0)
    idle.timer.start()
    idle.clock.advance(4.0)
    idle.timer.begin_use()
    idle.clock.pump([1.0] * 20)
    idle.timer.end_use()

    idle.clock.pump([1.0] * 10)

    assert idle.expired == [29.0]


def test_it_counts_from_the_end_of_the_last_of_overlapping_uses() -> None:
    idle = Idle(5.0)
    idle.timer.start()
    idle.timer.begin_use()
    idle.timer.begin_use()
    idle.clock.advance(1.0)
    idle.timer.end_use()
    idle.clock.advance(1.0)
    idle.timer.end_use()

    idle.clock.pump([1.0] * 10)

    assert idle.expired == [7.0]


def test_uses_cost_no_timers() -> None:
    idle = Idle(5.0)
    idle.timer.start()

    for _ in range(100):
        idle.timer.begin_use()
        idle.timer.end_use()

    assert len(idle.clock.getDelayedCalls()) == 1


def test_an_objection_puts_it_off_for_a_moment() -> None:
    idle = Idle(5.0)
    idle.allowed = False
    idle.timer.start()
    idle.clock.pump([1.0] * 7)

    idle.allowed = True
    idle.clock.pump([1.0] * 2)

    assert idle.expired == [8.0]


def test_a_use_that_spans_a_restart_counts_for_both() -> None:
    idle = Idle(5.0)
    idle.timer.start()
    idle.timer.begin_use()
    idle.timer.stop()
    idle.timer.start()

    idle.clock.pump([1.0] * 10)
    assert idle.expired == []
    idle.timer.end_use()
    idle.clock.pump([1.0] * 5)

    assert idle.expired == [15.0]


def test_a_use_cannot_end_before_it_began() -> None:
    with pytest.raises(ValueError, match="had not begun"):
        Idle(5.0).timer.end_use()
