"""Coroutines run to their end."""

from __future__ import annotations

import pytest
from twisted.internet.defer import CancelledError, Deferred, succeed

from llamaswap.errands import Errand

Ends = list[BaseException | None]


def test_a_coroutine_that_never_waits_is_over_at_once() -> None:
    ends: Ends = []

    async def errand() -> None:
        assert await succeed(5) == 5

    Errand(errand(), ends.append).start()

    assert ends == [None]


def test_it_goes_on_with_what_it_waited_for() -> None:
    ends: Ends = []
    seen: list[object] = []
    first: Deferred[int] = Deferred()
    second: Deferred[int] = Deferred()

    async def inner() -> int:
        return await first

    async def errand() -> None:
        seen.append(await inner())
        seen.append(await Deferred.fromCoroutine(outer()))

    async def outer() -> int:
        return await second

    Errand(errand(), ends.append).start()
    assert ends == []
    first.callback(1)
    assert ends == []
    second.callback(2)

    assert (seen, ends) == ([1, 2], [None])


@pytest.mark.parametrize("waits", [False, True])
def test_what_it_raises_is_told(waits: bool) -> None:
    ends: Ends = []
    gate: Deferred[None] = Deferred()
    error = KeyError("x")

    async def errand() -> None:
        if waits:
            await gate
        raise error

    Errand(errand(), ends.append).start()
    gate.callback(None)

    assert ends == [error]


def test_a_failure_is_raised_where_it_waits() -> None:
    ends: Ends = []
    seen: list[BaseException] = []
    gate: Deferred[None] = Deferred()
    error = KeyError("x")

    async def errand() -> None:
        try:
            await gate
        except KeyError as caught:
            seen.append(caught)

    Errand(errand(), ends.append).start()
    gate.errback(error)

    assert (seen, ends) == ([error], [None])


def test_cancelling_cancels_what_it_waits_for_and_only_that() -> None:
    ends: Ends = []
    cancelled: list[str] = []
    first: Deferred[None] = Deferred(lambda _: cancelled.append("first"))
    second: Deferred[None] = Deferred(lambda _: cancelled.append("second"))

    async def errand() -> None:
        try:
            await Deferred.fromCoroutine(inner())
        finally:
            await second

    async def inner() -> None:
        await first

    running = Errand(errand(), ends.append)
    running.start()
    running.cancel()
    assert (cancelled, ends) == (["first"], [])
    second.callback(None)

    (end,) = ends
    assert isinstance(end, CancelledError)
    running.cancel()
    assert len(ends) == 1


def test_one_that_is_cancelled_while_it_runs_is_cancelled_where_it_next_waits() -> None:
    ends: Ends = []
    reached: list[str] = []
    start: Deferred[None] = Deferred()
    gate: Deferred[None] = Deferred()

    async def errand() -> None:
        await start
        running.cancel()
        reached.append("after")
        await gate
        reached.append("never")

    running = Errand(errand(), ends.append)
    running.start()
    start.callback(None)

    assert reached == ["after"]
    (end,) = ends
    assert isinstance(end, CancelledError)


def test_what_fires_while_it_runs_is_not_lost() -> None:
    ends: Ends = []
    start: Deferred[None] = Deferred()
    gate: Deferred[int] = Deferred()
    seen: list[int] = []

    async def errand() -> None:
        await start
        gate.callback(7)
        seen.append(await gate)

    Errand(errand(), ends.append).start()
    start.callback(None)

    assert (seen, ends) == ([7], [None])


def test_what_was_waited_for_keeps_no_failure_to_complain_of() -> None:
    gate: Deferred[None] = Deferred()

    async def errand() -> None:
        await gate

    Errand(errand(), lambda _: None).start()
    gate.errback(KeyError("told"))
    kept: list[object] = []
    gate.addBoth(kept.append)

    assert kept == [None]


def test_ten_thousand_waits_take_no_deeper_stack_than_one() -> None:
    ends: Ends = []

    async def errand() -> None:
        for _ in range(10_000):
            await succeed(None)

    Errand(errand(), ends.append).start()

    assert ends == [None]
