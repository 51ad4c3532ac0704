"""In which order others are told, and that nobody is told twice."""

from __future__ import annotations

from twisted.internet.defer import CancelledError
from twisted.logger import capturedLogs

from llamaswap.processes.outbox import Outbox, Waiters
from support.processes_fakes import Outcome


def test_calls_are_made_in_order_even_when_one_posts_and_delivers_more() -> None:
    outbox, seen = Outbox(), list[str]()

    def first() -> None:
        seen.append("first")
        outbox.post(lambda: seen.append("third"))
        outbox.deliver()

    outbox.post(first)
    outbox.post(lambda: seen.append("second"))
    outbox.deliver()

    assert seen == ["first", "second", "third"]


def test_a_call_that_fails_is_logged_and_does_not_stop_the_rest() -> None:
    outbox, seen = Outbox(), list[str]()

    def broken() -> None:
        raise KeyError("x")

    outbox.post(broken)
    outbox.post(lambda: seen.append("next"))
    with capturedLogs() as logged:
        outbox.deliver()

    assert seen == ["next"]
    assert [event["log_format"] for event in logged] == ["process.listener_failed"]


def test_waiters_are_answered_at_the_delivery() -> None:
    outbox = Outbox()
    waiters = Waiters(outbox)
    outcome = Outcome(waiters.add())

    waiters.answer()
    assert outcome.pending
    outbox.deliver()

    assert outcome.succeeded
    assert len(waiters) == 0


def test_whoever_comes_after_the_answer_waits_for_the_next() -> None:
    outbox = Outbox()
    waiters = Waiters(outbox)
    waiters.answer(ValueError("no"))

    late = Outcome(waiters.add())
    outbox.deliver()

    assert late.pending


def test_a_waiter_that_leaves_between_answer_and_delivery_is_told_once() -> None:
    outbox = Outbox()
    waiters = Waiters(outbox)
    outcome = Outcome(waiters.add())
    waiters.answer()

    outcome.deferred.cancel()
    with capturedLogs() as logged:
        outbox.deliver()

    assert logged == []
    assert isinstance(outcome.failure, CancelledError)
    assert outcome.times == 1
