from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.activity import backlog as backlog_module
from llamaswap.activity.backlog import ENOUGH, MOST_AT_ONCE, Backlog
from llamaswap.activity.rows import Values
from support.activity_rows import Ready, visit


def entry(number: int) -> Ready:
    return Ready(visit(str(number)))


def models(rows: list[Values] | tuple[Values, ...]) -> list[int]:
    return [int(str(row[1])) for row in rows]


def filled(count: int) -> Backlog:
    backlog = Backlog()
    for number in range(count):
        backlog.add(entry(number))
    return backlog


def test_a_few_rows_wait_until_they_are_wanted() -> None:
    backlog = filled(3)
    due = [backlog.due]

    backlog.want_all()
    due.append(backlog.due)
    _, rows = backlog.next_batch()

    assert models(list(rows)) == [0, 1, 2]
    assert [*due, backlog.due] == [False, True, False]


def test_what_comes_after_the_wish_may_wait() -> None:
    backlog = filled(3)
    backlog.want_all()
    backlog.next_batch()
    backlog.add(entry(3))

    assert not backlog.due


def test_enough_rows_wait_for_nobody() -> None:
    backlog = filled(ENOUGH - 1)

    assert backlog.add(entry(ENOUGH))
    assert backlog.due


@given(st.lists(st.integers(0, 2 * MOST_AT_ONCE), max_size=5), st.data())
def test_every_row_goes_once_and_in_order_though_batches_come_back(
    arrivals: list[int], data: st.DataObject
) -> None:
    backlog, came, written = Backlog(), 0, list[int]()
    for count in arrivals:
        for _ in range(count):
            backlog.add(entry(came))
            came += 1
        backlog.want_all()
        while backlog.due:
            batch, rows = backlog.next_batch()
            assert len(batch) <= MOST_AT_ONCE
            if data.draw(st.booleans()):
                backlog.put_back(batch, rows)
                break
            written += models(list(rows))
    written += [int(left.activity().model) for left in backlog.take_all()]

    assert written == list(range(came))
    assert (backlog.left, backlog.gone, len(backlog), backlog.dropped) == (came, came, 0, 0)


def test_of_too_many_rows_the_oldest_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog_module, "MOST_WAITING", ENOUGH)
    backlog = filled(ENOUGH + 5)
    _, rows = backlog.next_batch()

    assert models(list(rows)) == list(range(5, ENOUGH + 5))
    assert (backlog.dropped, backlog.gone) == (5, ENOUGH + 5)
