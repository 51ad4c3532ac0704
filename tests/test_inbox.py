"""Events are taken up one at a time, whatever happens while one is carried out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from llamaswap.inbox import Inbox
from llamaswap.scheduling.vocabulary import Decision, Facts, Stop

CROWD = 3000  # more than Python's stack has frames


class Desk:
    """An inbox whose decisions are noted."""

    def __init__(self) -> None:
        self.now = 0.0
        self.noted: list[str] = []
        self.inbox = Inbox(self._facts, self._carry_out, lambda now: self.noted.append(f"settled at {now:g}"))

    def post(self, name: str, *more: str) -> None:
        """Post an event whose one decision is called `name`, and posts others while it is carried out."""

        def event(facts: Facts) -> Sequence[Decision]:
            return [Stop(frozenset({name, *(f">{other}" for other in more)}))]

        self.inbox.post(event)

    def _facts(self) -> Facts:
        self.now += 1.0
        return Facts(now=self.now)

    def _carry_out(self, decision: Decision, now: float) -> None:
        assert isinstance(decision, Stop)
        for name in sorted(decision.models):
            if name.startswith(">"):
                self.post(name[1:])
            else:
                self.noted.append(f"{name} at {now:g}")


def test_an_event_is_carried_out_within_the_call() -> None:
    desk = Desk()

    desk.post("a")

    assert desk.noted == ["a at 1", "settled at 1"]


def test_an_event_that_comes_while_another_is_carried_out_waits_and_sees_facts_of_its_own() -> None:
    desk = Desk()

    desk.post("a", "b", "c")

    assert desk.noted == ["a at 1", "b at 2", "c at 3", "settled at 3"]
    assert desk.inbox.turn == 3


def test_events_that_each_bring_the_next_do_not_recurse() -> None:
    left = CROWD
    inbox = Inbox(lambda: Facts(now=0.0), lambda _decision, _now: again(), lambda _now: None)

    def again() -> None:
        nonlocal left
        left -= 1
        if left:
            inbox.post(event)

    def event(facts: Facts) -> Sequence[Decision]:
        return [Stop(frozenset())]

    inbox.post(event)

    assert left == 0
    assert inbox.turn == CROWD


def test_an_event_that_fails_does_not_stop_the_next() -> None:
    desk = Desk()

    def fails(facts: Facts) -> Sequence[Decision]:
        raise ZeroDivisionError

    try:
        desk.inbox.post(fails)
    except ZeroDivisionError:
        desk.post("a")

    assert desk.noted == ["a at 2", "settled at 2"]


def test_what_came_while_an_event_failed_is_taken_up_all_the_same() -> None:
    desk = Desk()

    def fails(facts: Facts) -> Sequence[Decision]:
        desk.post("a")
        desk.post("b")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        desk.inbox.post(fails)

    assert desk.noted == ["a at 2", "b at 3", "settled at 4"]


def test_while_it_is_held_nothing_is_taken_up_and_then_one_event_before_all_others() -> None:
    desk = Desk()
    desk.inbox.hold()
    desk.post("a")
    desk.post("b")
    assert desk.noted == []

    desk.inbox.go_on(lambda _facts: [Stop(frozenset({"first"}))])

    assert desk.noted == ["first at 1", "a at 2", "b at 3", "settled at 3"]
    desk.post("c")
    assert desk.noted[-2:] == ["c at 4", "settled at 4"]
