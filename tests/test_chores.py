"""What becomes of work that nobody awaits."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from twisted.internet.defer import CancelledError, Deferred

from llamaswap.chores import Chores
from support.dispatch_rig import nothing_goes_wrong, troubles


async def waits_for(deferred: Deferred[None]) -> None:
    """Work that ends when this fires."""
    await deferred


async def fails() -> None:
    """Work that goes wrong."""
    raise ValueError("wrong")


def start(work: Coroutine[Deferred[Any], Any, None]) -> tuple[Chores, Deferred[None]]:
    """Start this work."""
    chores = Chores()
    return chores, chores.start("some work", work)


def test_work_runs_at_once_and_is_over_when_it_ends() -> None:
    goes_on: Deferred[None] = Deferred()
    chores, chore = start(waits_for(goes_on))
    ended: list[None] = []
    chore.addCallback(ended.append)
    assert len(ended) == 0

    goes_on.callback(None)

    assert len(ended) == 1
    assert chores._running == {}


def test_work_that_fails_is_logged_under_its_name_and_keeps_its_failure_to_itself() -> None:
    with troubles() as seen:
        chores, chore = start(fails())
        del chore

    assert len(seen) == 1
    assert "wrong" in seen[0]
    assert chores._running == {}


def test_the_end_of_the_owner_cancels_everything_without_a_word() -> None:
    pending: list[Deferred[None]] = [Deferred(), Deferred()]
    chores = Chores()
    with nothing_goes_wrong():
        for deferred in pending:
            chores.start("some work", waits_for(deferred))
        chores.cancel_all()

    assert all(deferred.called for deferred in pending)
    assert chores._running == {}


def test_work_may_start_more_work_and_be_cancelled_by_it() -> None:
    chores = Chores()
    never: Deferred[None] = Deferred()

    async def ends_all() -> None:
        chores.cancel_all()

    with nothing_goes_wrong():
        chores.start("first", waits_for(never))
        chores.start("second", ends_all())

    assert chores._running == {}


def test_one_piece_of_work_can_be_cancelled_by_who_started_it() -> None:
    with nothing_goes_wrong():
        _, chore = start(waits_for(Deferred()))
        ended: list[object] = []
        chore.addBoth(ended.append)
        chore.cancel()

    assert ended == [None]
    assert not isinstance(ended[0], CancelledError)
