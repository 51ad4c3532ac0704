from __future__ import annotations

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from llamaswap.doubts import SETTLE, Doubts


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def doubts(clock: Clock) -> Doubts:
    return Doubts(clock)


def fired(deferred: Deferred[None]) -> bool:
    return deferred.called


def test_nobody_waits_without_a_doubt(doubts: Doubts) -> None:
    assert "a" not in doubts
    assert fired(doubts.over("a"))


def test_a_noticed_end_ends_the_doubt_at_once(doubts: Doubts, clock: Clock) -> None:
    doubts.begin("a")
    first, second, other = doubts.over("a"), doubts.over("a"), doubts.over("b")
    assert "a" in doubts
    assert (fired(first), fired(second), fired(other)) == (False, False, True)

    doubts.end("a")

    assert "a" not in doubts
    assert fired(first)
    assert fired(second)
    assert clock.getDelayedCalls() == []


def test_a_server_that_does_not_end_is_trusted_again(doubts: Doubts, clock: Clock) -> None:
    doubts.begin("a")
    waiter = doubts.over("a")
    clock.advance(SETTLE * 0.9)
    doubts.begin("a")
    assert not fired(waiter)

    clock.advance(SETTLE * 0.11)

    assert fired(waiter), "a second broken connection does not prolong it"
    assert "a" not in doubts


def test_an_end_without_a_doubt_means_nothing(doubts: Doubts) -> None:
    doubts.end("a")

    assert fired(doubts.over("a"))


def test_who_waits_may_leave(doubts: Doubts) -> None:
    doubts.begin("a")
    leaving, staying = doubts.over("a"), doubts.over("a")
    left: list[bool] = []
    leaving.addErrback(lambda failure: left.append(bool(failure.check(CancelledError))))

    leaving.cancel()
    doubts.end("a")

    assert left == [True]
    assert fired(staying)


def test_the_end_of_all_doubts_leaves_no_timer(doubts: Doubts, clock: Clock) -> None:
    doubts.begin("a")
    doubts.begin("b")
    waiter = doubts.over("b")

    doubts.clear()

    assert fired(waiter)
    assert clock.getDelayedCalls() == []


def test_only_a_server_that_lives_on_is_told_of(clock: Clock) -> None:
    told: list[str] = []
    uneasy = Doubts(clock, lambda: told.append(f"in doubt: {'a' in uneasy}"))
    uneasy.begin("a")
    uneasy.end("a")
    uneasy.begin("a")
    uneasy.clear()
    assert told == []

    uneasy.begin("a")
    clock.advance(SETTLE)

    assert told == ["in doubt: False"]
