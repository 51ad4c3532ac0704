from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher

from llamaswap.activity import backlog as backlog_module
from llamaswap.activity.backlog import ENOUGH, MOST_AT_ONCE
from llamaswap.activity.journal import GATHER, PATIENCE, RETRY, Journal, JournalClosed, StoreFailed
from llamaswap.activity.query import ActivityQuery
from llamaswap.activity.record import Activity
from llamaswap.activity.store import ActivityStore, StoreUnusable
from support.activity_rows import ListeningClock, Ready, WeakStore, visit

FULL = sqlite3.OperationalError("database or disk is full")


class Desk:
    """A journal on a store that can be made to fail, and what came of it."""

    def __init__(self) -> None:
        self.clock = ListeningClock()
        self.store = WeakStore()
        self.written: list[int] = []
        self.journal = Journal(lambda: self.store, self.clock, self.written.append)

    def rows(self) -> list[str]:
        page = self.clock.answer(self.journal.page(ActivityQuery(limit=999, descending=False)))
        return [row["model"] for row in page["data"]]

    def write(self, *models: str) -> None:
        """Let rows come, and the moment pass for which they are gathered."""
        for model in models:
            self.journal.leave(Ready(visit(model)))
        self.clock.advance(GATHER)

    def listen_for_attempts(self, count: int) -> None:
        """Wait until the store was tried so often, and the outcome has been heard of."""
        self.clock.listen_until(lambda: self.store.attempts >= count and self.journal._writing is None)


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    desk.journal.start()
    yield desk
    desk.store.trouble = None
    desk.clock.answer(desk.journal.close())
    assert not [thread for thread in threading.enumerate() if "activity journal" in thread.name]


@pytest.fixture
def logged() -> Iterator[list[LogEvent]]:
    events: list[LogEvent] = []
    observer = cast("ILogObserver", events.append)
    globalLogPublisher.addObserver(observer)
    yield events
    globalLogPublisher.removeObserver(observer)


def named(events: list[LogEvent], name: str) -> list[LogEvent]:
    return [event for event in events if str(event.get("log_format")).startswith(name)]


def block(store: WeakStore) -> threading.Event:
    """Keep the store's thread busy from its next batch on, until the event is set."""
    free = threading.Event()
    add = store.add

    def slow(rows: Any) -> list[int]:
        assert free.wait(10.0)
        return add(rows)

    store.add = slow  # type: ignore[method-assign]  # a slow disk
    return free


def test_rows_are_stored_in_order_and_announced_with_their_ids(desk: Desk) -> None:
    desk.write("a", "b", "c")
    desk.clock.listen_until(lambda: len(desk.written) == 3)
    assert desk.written == [1, 2, 3]
    assert desk.rows() == ["a", "b", "c"]


def test_rows_are_gathered_for_a_moment(desk: Desk) -> None:
    desk.journal.leave(Ready(visit("a")))
    desk.clock.advance(GATHER * 0.9)
    desk.journal.leave(Ready(visit("b")))
    assert desk.store.attempts == 0

    desk.clock.advance(GATHER * 0.1)
    desk.clock.listen_until(lambda: len(desk.written) == 2)

    assert desk.store.batches == [2]
    assert desk.clock.getDelayedCalls() == []


def test_as_soon_as_there_are_enough_rows_they_are_written(desk: Desk) -> None:
    for number in range(ENOUGH + 5):
        desk.journal.leave(Ready(visit(str(number))))
    desk.clock.listen_until(lambda: desk.written)

    assert desk.store.batches == [ENOUGH]
    assert desk.journal.waiting == 5


def test_a_backlog_goes_in_batches_that_do_not_hold_the_reactor_for_long(desk: Desk) -> None:
    free = block(desk.store)
    for _ in range(ENOUGH + 2 * MOST_AT_ONCE + 1):
        desk.journal.leave(Ready(visit()))
    free.set()
    desk.clock.advance(GATHER)
    desk.clock.listen_until(lambda: len(desk.written) == ENOUGH + 2 * MOST_AT_ONCE + 1)

    assert desk.store.batches == [ENOUGH, MOST_AT_ONCE, MOST_AT_ONCE, 1]
    assert desk.written == sorted(desk.written)


def test_what_piled_up_goes_into_one_batch(desk: Desk) -> None:
    free = block(desk.store)
    desk.write("0")
    desk.write(*map(str, range(1, 20)))
    assert desk.journal.waiting == 19
    free.set()
    desk.clock.listen_until(lambda: len(desk.written) == 20)
    assert desk.store.batches == [1, 19]
    assert desk.rows() == [str(number) for number in range(20)]


def test_a_question_sees_the_row_written_just_before(desk: Desk) -> None:
    desk.journal.leave(Ready(visit("m")))
    assert desk.clock.answer(desk.journal.stats("m"))["total_requests"] == 1
    assert desk.clock.answer(desk.journal.stats(None))["total_requests"] == 1


def test_a_question_sees_the_rows_that_came_while_others_were_written(desk: Desk) -> None:
    free = block(desk.store)
    desk.write("being written")
    desk.journal.leave(Ready(visit("waiting")))
    asked = desk.journal.page(ActivityQuery())
    free.set()

    assert desk.clock.answer(asked)["total"] == 2


def test_a_question_does_not_wait_for_rows_that_come_later(desk: Desk) -> None:
    free = block(desk.store)
    desk.write("before")
    asked = desk.journal.stats(None)
    desk.journal.leave(Ready(visit("after")))
    free.set()

    assert desk.clock.answer(asked)["total_requests"] == 1
    assert desk.journal.waiting == 1


def test_a_look_sees_what_is_stored_and_waits_for_nothing_else(desk: Desk) -> None:
    desk.write("stored")
    desk.clock.listen_until(lambda: desk.written)
    desk.journal.leave(Ready(visit("waits")))

    assert desk.clock.answer(desk.journal.look(ActivityStore.newest)) == 1
    assert desk.journal.waiting == 1


def test_a_look_that_fails_says_why_and_one_at_a_closed_journal_does_too(desk: Desk) -> None:
    def broken(_store: ActivityStore) -> int:
        raise FULL

    with pytest.raises(StoreFailed, match="disk is full"):
        desk.clock.answer(desk.journal.look(broken))
    desk.clock.answer(desk.journal.close())
    with pytest.raises(JournalClosed):
        desk.clock.answer(desk.journal.look(ActivityStore.newest))


def test_a_question_is_answered_while_the_store_takes_no_rows(desk: Desk) -> None:
    desk.store.trouble = FULL
    desk.write("lost for now")
    desk.listen_for_attempts(1)

    assert desk.clock.answer(desk.journal.stats(None))["total_requests"] == 0


def test_a_failing_store_is_told_once_and_rows_wait_for_it(desk: Desk, logged: list[LogEvent]) -> None:
    desk.store.trouble = FULL
    desk.write("a")
    desk.listen_for_attempts(1)
    for model in "bcd":
        desk.journal.leave(Ready(visit(model)))
    desk.clock.advance(RETRY)
    desk.listen_for_attempts(2)
    desk.clock.advance(RETRY - 0.1)
    assert desk.store.attempts == 2
    assert (desk.journal.waiting, desk.written) == (4, [])

    desk.store.trouble = None
    desk.clock.advance(0.2)
    desk.clock.listen_until(lambda: len(desk.written) == 4)

    assert desk.rows() == ["a", "b", "c", "d"]
    (warning,) = named(logged, "activity.store_failed")
    assert warning["why"] == "database or disk is full"
    assert len(named(logged, "activity.store_works_again")) == 1


def test_a_store_that_fails_for_long_costs_the_oldest_rows(
    desk: Desk, logged: list[LogEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog_module, "MOST_WAITING", 3)
    monkeypatch.setattr(backlog_module, "ENOUGH", 1)
    desk.store.trouble = FULL
    desk.write("a")
    desk.listen_for_attempts(1)
    for model in "bcde":
        desk.journal.leave(Ready(visit(model)))
    assert desk.journal.waiting == 3

    desk.store.trouble = None
    desk.clock.advance(RETRY)
    desk.clock.listen_until(lambda: len(desk.written) == 3)

    assert desk.rows() == ["c", "d", "e"]
    (again,) = named(logged, "activity.store_works_again")
    assert again["lost"] == 2


def test_a_failing_question_says_why(desk: Desk) -> None:
    desk.store.trouble = FULL
    with pytest.raises(StoreFailed, match="disk is full"):
        desk.clock.answer(desk.journal.page(ActivityQuery()))


def test_a_question_may_be_given_up(desk: Desk) -> None:
    asked = desk.journal.page(ActivityQuery())
    failures: list[object] = []
    asked.addErrback(failures.append)
    asked.cancel()
    assert len(failures) == 1
    assert desk.rows() == []


def test_a_fault_in_a_listener_does_not_stop_the_writing(logged: list[LogEvent]) -> None:
    desk = Desk()
    heard: list[int] = []

    def listener(row_id: int) -> None:
        heard.append(row_id)
        raise LookupError(row_id)

    desk.journal = Journal(lambda: desk.store, desk.clock, listener)
    desk.journal.start()
    desk.write("a", "b")
    desk.clock.listen_until(lambda: len(heard) == 2)
    assert desk.rows() == ["a", "b"]
    desk.clock.answer(desk.journal.close())
    assert len(named(logged, "activity.journal_broke")) == 2


class Broken:
    """Somebody who cannot say what happened."""

    def activity(self) -> Activity:
        raise LookupError("no row")

    def stored(self, row_id: int) -> None:
        raise AssertionError(row_id)


def test_a_fault_in_who_leaves_a_row_costs_no_other_row(desk: Desk, logged: list[LogEvent]) -> None:
    desk.journal.leave(Ready(visit("a")))
    desk.journal.leave(Broken())
    desk.journal.leave(Ready(visit("b")))

    assert desk.rows() == ["a", "b"]
    assert desk.written == [1, 2]
    assert len(named(logged, "activity.journal_broke")) == 1


class Late:
    """Somebody whose row is worked out when it is wanted."""

    def __init__(self) -> None:
        self.asked = 0
        self.ids: list[int] = []

    def activity(self) -> Activity:
        self.asked += 1
        return visit("late")

    def stored(self, row_id: int) -> None:
        self.ids.append(row_id)


def test_a_row_is_worked_out_when_it_is_to_be_written(desk: Desk) -> None:
    late = Late()
    desk.journal.leave(late)
    assert late.asked == 0

    assert desk.rows() == ["late"]
    assert (late.asked, late.ids) == (1, [1])


def test_starting_on_an_unusable_store_fails_at_once() -> None:
    def unusable() -> ActivityStore:
        raise StoreUnusable("a.db", "file is not a database")

    journal = Journal(unusable, ListeningClock())
    with pytest.raises(StoreUnusable, match=r"a\.db: file is not a database"):
        journal.start()
    journal.leave(Ready(visit()))
    assert journal.waiting == 1
    assert journal.close().called


def test_rows_from_before_the_start_are_stored_at_the_start() -> None:
    desk = Desk()
    desk.journal.leave(Ready(visit("early")))
    desk.journal.start()
    assert desk.rows() == ["early"]
    desk.clock.answer(desk.journal.close())


def test_closing_writes_what_waits_and_ends_the_thread() -> None:
    desk = Desk()
    desk.journal.start()
    free = block(desk.store)
    desk.write("a")
    desk.journal.leave(Ready(visit("b")))
    desk.journal.leave(Ready(visit("c")))
    closed = desk.journal.close()
    assert not closed.called
    free.set()
    desk.clock.answer(closed)
    assert desk.written == [1, 2, 3]
    with pytest.raises(sqlite3.ProgrammingError):
        desk.store.stats(None)
    assert desk.clock.getDelayedCalls() == []


def test_a_closed_journal_takes_no_rows_and_no_questions() -> None:
    desk = Desk()
    desk.journal.start()
    desk.clock.answer(desk.journal.close())
    desk.journal.leave(Ready(visit()))
    assert desk.journal.waiting == 0
    with pytest.raises(JournalClosed):
        desk.clock.answer(desk.journal.page(ActivityQuery()))


def test_closing_twice_waits_for_the_same_end() -> None:
    desk = Desk()
    desk.journal.start()
    first, second = desk.journal.close(), desk.journal.close()
    desk.clock.listen_until(lambda: first.called and second.called)
    assert desk.journal.close().called


def test_closing_while_the_store_fails_tries_once_more_and_tells_the_loss(logged: list[LogEvent]) -> None:
    desk = Desk()
    desk.journal.start()
    desk.store.trouble = FULL
    desk.write("a")
    desk.listen_for_attempts(1)
    desk.journal.leave(Ready(visit("b")))
    desk.clock.answer(desk.journal.close())
    assert desk.store.attempts == 2
    assert desk.clock.getDelayedCalls() == []
    (lost,) = named(logged, "activity.rows_lost")
    assert lost["lost"] == 2


def test_closing_does_not_wait_for_ever(logged: list[LogEvent]) -> None:
    desk = Desk()
    desk.journal.start()
    free = block(desk.store)
    desk.write("a")
    closed: Deferred[None] = desk.journal.close()
    desk.clock.advance(PATIENCE)
    assert closed.called
    assert len(named(logged, "activity.close_gave_up")) == 1
    free.set()
    desk.clock.listen_until(lambda: desk.written)
    assert desk.journal._pool is not None
    desk.journal._pool.stop()
    desk.store.close()


def test_two_journals_share_nothing() -> None:
    one, two = Desk(), Desk()
    one.journal.start()
    two.journal.start()
    free = block(one.store)
    one.write("a")
    two.write("b")
    assert two.rows() == ["b"]
    free.set()
    assert one.rows() == ["a"]
    for desk in (one, two):
        desk.clock.answer(desk.journal.close())


def test_an_heir_gets_what_waits_and_what_still_comes(desk: Desk) -> None:
    heir = Desk()
    heir.journal.start()
    told: list[tuple[str, int]] = []
    free = block(desk.store)
    desk.journal.leave(Ready(visit("being written"), lambda row_id: told.append(("being written", row_id))))
    desk.clock.advance(GATHER)
    desk.journal.leave(Ready(visit("waiting"), lambda row_id: told.append(("waiting", row_id))))

    closed = desk.journal.hand_over(heir.journal)
    desk.journal.leave(Ready(visit("late"), lambda row_id: told.append(("late", row_id))))
    free.set()
    desk.clock.answer(closed)

    heir.clock.advance(GATHER)
    heir.clock.listen_until(lambda: len(told) == 2)
    assert heir.rows() == ["waiting", "late"]
    assert told == [("waiting", 1), ("late", 2)]
    assert desk.written == []
    heir.clock.answer(heir.journal.close())


def test_rows_that_are_only_gathered_belong_to_the_store_that_is_replaced(desk: Desk) -> None:
    heir = Desk()
    heir.journal.start()
    desk.journal.leave(Ready(visit("before")))

    closed = desk.journal.hand_over(heir.journal)
    desk.journal.leave(Ready(visit("after")))
    desk.clock.answer(closed)

    assert desk.store.batches == [1]
    assert heir.rows() == ["after"]
    heir.clock.answer(heir.journal.close())


def test_a_store_that_fails_when_it_is_replaced_loses_nothing(desk: Desk) -> None:
    heir = Desk()
    heir.journal.start()
    desk.store.trouble = FULL
    desk.write("a")
    desk.listen_for_attempts(1)

    desk.clock.answer(desk.journal.hand_over(heir.journal))
    heir.clock.advance(GATHER)
    heir.clock.listen_until(lambda: heir.written == [1])

    assert heir.rows() == ["a"]
    heir.clock.answer(heir.journal.close())


def test_an_heir_may_have_an_heir(desk: Desk) -> None:
    second, third = Desk(), Desk()
    second.journal.start()
    third.journal.start()

    desk.clock.answer(desk.journal.hand_over(second.journal))
    second.clock.answer(second.journal.hand_over(third.journal))
    desk.journal.leave(Ready(visit("very late")))
    third.clock.advance(GATHER)
    third.clock.listen_until(lambda: third.written == [1])

    assert third.rows() == ["very late"]
    third.clock.answer(third.journal.close())
