from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import LogEvent, capturedLogs

from llamaswap.telemetry.errand import FIRST_REST, LONGEST_REST, Errand, in_thread, runner
from llamaswap.telemetry.sources import SourceAbsent, SourceFailed
from support.telemetry_sources import FakeSource, Threads


class Trip:
    """An errand to a source, under a clock."""

    def __init__(self, *answers: str | Exception) -> None:
        self.clock = Clock()
        self.threads = Threads()
        self.source: FakeSource[str] = FakeSource(*answers)
        self.errand: Errand[str] = Errand(
            "gpu", self.source.open, run=self.threads.run, clock=self.clock, patience=4.0
        )

    def ask(self) -> list[str | None]:
        """Ask; the answer is in the list as soon as it is there."""
        answers: list[str | None] = []
        self.errand.ask().addCallback(answers.append)
        return answers


def names(events: Sequence[LogEvent]) -> list[str]:
    return [(event["log_format"] or "").split(" ")[0] for event in events if event.get("log_format")]


def test_a_source_is_opened_once_and_asked_again_and_again() -> None:
    trip = Trip("one", "two")

    assert trip.ask() == ["one"]
    assert trip.ask() == ["two"]
    assert trip.source.opened == 1


def test_a_source_that_hangs_costs_one_answer_and_one_thread() -> None:
    trip = Trip("late")
    trip.threads.hangs = True
    with capturedLogs() as events:
        answers = trip.ask()
        trip.clock.advance(3.9)
        assert answers == []
        trip.clock.advance(0.1)
        assert answers == [None]
        for _ in range(100):
            trip.clock.advance(5)
            assert trip.ask() == [None]

    assert trip.threads.started == 1
    assert names(events) == ["telemetry.hangs"]


def test_what_comes_too_late_is_thrown_away_and_the_next_question_is_answered() -> None:
    trip = Trip("stale", "fresh")
    trip.threads.hangs = True
    answers = trip.ask()
    trip.clock.advance(10)
    trip.threads.hangs = False
    with capturedLogs() as events:
        trip.threads.come_back()

    assert answers == [None]
    assert trip.ask() == ["fresh"]
    assert names(events) == ["telemetry.answers_again"]


def test_a_source_that_fails_is_closed_and_opened_anew_after_a_rest() -> None:
    trip = Trip("one", SourceFailed("GPU is lost"), "two")
    trip.ask()
    with capturedLogs() as events:
        assert trip.ask() == [None]
        assert trip.source.closed == 1
        trip.clock.advance(FIRST_REST - 0.1)
        assert trip.ask() == [None]
        assert trip.source.opened == 1

        trip.clock.advance(0.1)
        assert trip.ask() == ["two"]

    assert trip.source.opened == 2
    assert names(events) == ["telemetry.failed", "telemetry.works_again"]


def test_rests_grow_up_to_a_limit_and_are_told_once() -> None:
    trip = Trip(SourceFailed("broken"))
    asked_at: list[float] = []
    with capturedLogs() as events:
        for _ in range(4000):
            before = trip.threads.started
            trip.ask()
            if trip.threads.started > before:
                asked_at.append(trip.clock.seconds())
            trip.clock.advance(1)

    gaps = [after - before for before, after in pairwise(asked_at)]
    assert gaps[:3] == [5, 10, 20]
    assert max(gaps) == gaps[-1] == LONGEST_REST
    assert names(events) == ["telemetry.failed"]


def test_nothing_being_there_is_no_trouble_and_is_looked_for_now_and_then() -> None:
    trip = Trip(SourceAbsent("no driver"))
    with capturedLogs() as events:
        trip.ask()
        trip.clock.advance(LONGEST_REST - 1)
        trip.ask()
        assert trip.threads.started == 1
        trip.clock.advance(1)
        trip.ask()

    assert trip.threads.started == 2
    assert names(events) == ["telemetry.nothing_found"]


def test_a_mistake_of_the_program_is_told_with_its_trace_and_treated_as_a_failure() -> None:
    trip = Trip(ValueError("bug"), "better")
    with capturedLogs() as events:
        assert trip.ask() == [None]

    assert [event["log_failure"].type for event in events] == [ValueError]
    trip.clock.advance(FIRST_REST)
    assert trip.ask() == ["better"]


def test_threads_that_cannot_be_started_are_a_failure_like_any_other() -> None:
    clock = Clock()

    def no_thread(work: Callable[[], Any]) -> Deferred[Any]:
        raise RuntimeError("can't start new thread")

    errand: Errand[str] = Errand("gpu", FakeSource("x").open, run=no_thread, clock=clock, patience=4.0)
    answers: list[str | None] = []
    with capturedLogs():
        errand.ask().addCallback(answers.append)

    assert answers == [None]


def test_ending_closes_the_source_and_leaves_no_timer() -> None:
    trip = Trip("one")
    trip.ask()
    trip.errand.end()

    assert trip.source.closed == 1
    assert trip.ask() == [None]
    assert trip.clock.getDelayedCalls() == []


def test_ending_waits_for_nobody_and_a_source_that_hangs_is_closed_when_it_comes_back() -> None:
    trip = Trip("late")
    trip.threads.hangs = True
    answers = trip.ask()
    trip.errand.end()

    assert answers == [None]
    assert trip.clock.getDelayedCalls() == []
    assert trip.source.closed == 0
    trip.threads.hangs = False
    with capturedLogs():
        trip.threads.come_back()
    assert trip.source.closed == 1


class Inbox:
    """A reactor's way to hear from threads."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], Any]] = []
        self.called = threading.Event()

    def callFromThread(self, function: Callable[..., Any], *args: Any) -> None:
        self.calls.append(lambda: function(*args))
        self.called.set()


def test_work_is_done_on_a_daemon_thread_and_its_outcome_comes_back_to_the_reactor() -> None:
    inbox = Inbox()
    threads: list[threading.Thread] = []
    outcomes: list[Any] = []
    work = runner(inbox)(lambda: threads.append(threading.current_thread()))  # type: ignore[arg-type]  # all it uses
    work.addCallback(outcomes.append)
    assert inbox.called.wait(10)
    assert outcomes == []

    inbox.calls[0]()

    assert outcomes == [None]
    assert threads[0].daemon
    assert threads[0] is not threading.main_thread()


def test_what_is_raised_on_the_thread_is_a_failure_of_the_deferred() -> None:
    inbox = Inbox()
    failures: list[Any] = []
    in_thread(inbox, lambda: [][0]).addErrback(failures.append)  # type: ignore[arg-type]  # all it uses
    assert inbox.called.wait(10)
    inbox.calls[0]()

    assert failures[0].type is IndexError
