"""The two rooms: who stands still, and that nobody loses his place by it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.config.model import SerialSettings
from llamaswap.scheduling.pausing import Lobby
from llamaswap.scheduling.score import Formula
from llamaswap.scheduling.vocabulary import Band, Ticket, band_of

NOBODY: frozenset[str] = frozenset()
BATCH, NORMAL = frozenset({Band.BATCH}), frozenset({Band.NORMAL})


def ticket(number: int, priority: int = 0, model: str = "A") -> Ticket:
    return Ticket(number=number, model=model, priority=priority, arrived=float(number))


def lobby(*tickets: Ticket) -> Lobby:
    both = Lobby(Formula.of(SerialSettings()))
    for each in tickets:
        both.add(each)
    return both


def numbers(tickets: object) -> list[int]:
    assert isinstance(tickets, Lobby) or hasattr(tickets, "__iter__")
    return [each.number for each in tickets]


def test_who_is_paused_waits_in_the_other_room_whether_he_came_before_or_after() -> None:
    both = lobby(ticket(1, -100), ticket(2))

    both.pause(BATCH)
    both.add(ticket(3, -98))
    both.add(ticket(4, 100))

    assert (numbers(both.open), numbers(both.closed), len(both)) == ([2, 4], [1, 3], 4)


def test_who_goes_on_has_the_place_that_he_had() -> None:
    both = lobby(ticket(1, -100), ticket(2, -100), ticket(3, -100))

    both.pause(BATCH)
    both.add(ticket(4, -100))
    both.resume(BATCH)

    assert numbers(both.open.in_order(NOBODY)) == [1, 2, 3, 4]
    assert not both.closed


def test_pausing_twice_and_resuming_what_goes_change_nothing() -> None:
    both = lobby(ticket(1, -100))

    both.resume(NORMAL)
    both.pause(BATCH)
    both.pause(BATCH | NORMAL)
    both.resume(NORMAL)

    assert (both.paused, numbers(both.closed)) == (BATCH, [1])


def test_a_paused_ticket_stands_behind_all_who_go() -> None:
    both = lobby(ticket(1, -99), ticket(2, -98), ticket(3), ticket(4))

    both.pause(BATCH)

    assert [both.position(number, NOBODY) for number in (3, 4, 2, 1)] == [1, 2, 3, 4]
    assert both.position(5, NOBODY) is None


def test_a_new_priority_keeps_number_and_age_and_may_change_the_room() -> None:
    both = lobby(ticket(1, -100), ticket(2))
    both.pause(BATCH)

    raised = both.reprioritise(1, 100)
    lowered = both.reprioritise(2, -1)

    assert raised == ticket(1, 100)
    assert (numbers(both.open), numbers(both.closed)) == ([1], [2])
    assert both.ticket(2) == lowered
    assert both.position(1, NOBODY) == 1


def test_who_does_not_wait_gets_no_priority() -> None:
    with pytest.raises(KeyError):
        lobby(ticket(1)).reprioritise(2, 0)


def test_the_oldest_of_a_band_is_known_after_an_older_one_came_into_it() -> None:
    both = lobby(ticket(1, -100), ticket(2), ticket(3))

    both.reprioritise(1, 5)

    assert both.band_view(10.0)[Band.NORMAL].oldest_wait == 9.0
    assert numbers(both.of("A")) == [1, 2, 3]


def test_both_rooms_count() -> None:
    both = lobby(ticket(1, -100, "A"), ticket(2, 0, "B"))

    both.pause(BATCH)

    view = both.band_view(5.0)
    assert (view[Band.BATCH].depth, view[Band.BATCH].oldest_wait, view[Band.NORMAL].depth) == (1, 4.0, 1)
    assert (both.count("A"), both.count("B"), numbers(both.of("A"))) == (1, 1, [1])
    both.remove(ticket(1, -100, "A"))
    assert (both.count("A"), both.count("B"), len(both)) == (0, 1, 1)


def test_all_can_be_seen_as_if_nobody_was_paused() -> None:
    both = lobby(ticket(1, -100), ticket(2))
    assert both.as_one() is both.open

    both.pause(BATCH)

    assert numbers(both.as_one().in_order(NOBODY)) == [2, 1]
    assert numbers(both.open) == [2]


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(-110, 110)),
            st.tuples(st.just("remove"), st.integers(0, 20)),
            st.tuples(st.just("raise"), st.integers(0, 20)),
            st.tuples(st.just("pause"), st.integers(0, 2)),
            st.tuples(st.just("resume"), st.integers(0, 2)),
        ),
        max_size=40,
    )
)
@settings(max_examples=200, deadline=None)
def test_whatever_is_done_everybody_is_in_the_one_right_room_once(steps: list[tuple[str, int]]) -> None:
    both, there, bands = lobby(), dict[int, Ticket](), tuple(Band)
    for number, (what, value) in enumerate(steps):
        chosen = there[sorted(there)[value % len(there)]] if there and value >= 0 else None
        if what == "add":
            there[number] = ticket(number, value, "AB"[number % 2])
            both.add(there[number])
        elif what == "remove" and chosen:
            both.remove(there.pop(chosen.number))
        elif what == "raise" and chosen:
            there[chosen.number] = both.reprioritise(chosen.number, value * 20 - 200)
            both.open.lanes()  # from now on the order is kept up to date
        elif what == "pause":
            both.pause(frozenset({bands[value]}))
        elif what == "resume":
            both.resume(frozenset({bands[value]}))

    paused = {each for each in there.values() if band_of(each.priority) in both.paused}
    assert sorted(numbers(both.closed)) == sorted(each.number for each in paused)
    assert sorted(numbers(both)) == sorted(there)
    places = sorted(there, key=lambda each: both.position(each, NOBODY) or 0)
    assert [both.position(each, NOBODY) for each in places] == list(range(1, len(there) + 1))
    in_order = [*both.open.in_order(NOBODY), *both.closed.in_order(NOBODY)]
    assert places == numbers(in_order)
    while both.open:
        assert both.open.best(NOBODY) == in_order[0]
        both.remove(in_order.pop(0))
