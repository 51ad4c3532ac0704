"""The fifo scheduler's queue: its order, its places, and who stands still."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.scheduling.fifo_queue import FifoQueue
from llamaswap.scheduling.vocabulary import Band, Ticket


def ticket(number: int, priority: int = 0, model: str = "A") -> Ticket:
    return Ticket(number=number, model=model, priority=priority, arrived=float(number))


def lineup(*tickets: Ticket, **priorities: int) -> FifoQueue:
    line = FifoQueue(priorities)
    for each in tickets:
        line.add(each)
    return line


def numbers(line: FifoQueue) -> list[int]:
    return [each.number for each in line.in_order()]


def test_both_priorities_count_and_equals_keep_their_order() -> None:
    line = lineup(ticket(1), ticket(2, 5), ticket(3, -5, "B"), ticket(4), B=10)

    assert numbers(line) == [2, 3, 1, 4]
    assert line.band(ticket(3, -5, "B")) is Band.NORMAL
    assert line.priority(ticket(3, -5, "B")) == 5


def test_places_count_from_one() -> None:
    line = lineup(ticket(1), ticket(2, 5))

    assert (line.position(ticket(2, 5)), line.position(ticket(1)), line.position(ticket(3))) == (1, 2, None)


def test_who_leaves_is_gone() -> None:
    line = lineup(ticket(1), ticket(2))

    assert line.remove(ticket(1))
    assert not line.remove(ticket(1))
    assert (numbers(line), len(line), line.ticket(1), line.ticket(2)) == ([2], 1, None, ticket(2))


def test_a_new_priority_keeps_number_and_age() -> None:
    line = lineup(ticket(1), ticket(2), ticket(3))

    assert line.reprioritise(ticket(3), 1) == ticket(3, 1)

    assert numbers(line) == [3, 1, 2]


def test_who_got_another_priority_is_known_by_his_number_all_the_same() -> None:
    line = lineup(ticket(1), ticket(2), ticket(3))
    line.reprioritise(ticket(3), 100)

    assert line.position(ticket(3)) == 1
    assert line.reprioritise(ticket(3), -100) == ticket(3, -100)
    assert line.remove(ticket(3))
    assert numbers(line) == [1, 2]


def test_so_is_who_came_with_it_from_another_queue() -> None:
    line = lineup(ticket(1), ticket(2, 100))

    assert line.position(ticket(2, 0)) == 1
    assert line.remove(ticket(2, 0))


def test_who_does_not_wait_gets_no_priority() -> None:
    with pytest.raises(KeyError):
        lineup(ticket(1)).reprioritise(ticket(2), 5)


def test_paused_ones_come_last_and_keep_their_order() -> None:
    line = lineup(ticket(1, 7), ticket(2, -100), ticket(3, -99), ticket(4))

    line.paused = frozenset({Band.NORMAL})

    assert numbers(line) == [3, 2, 1, 4]
    assert [line.position(each) for each in line.in_order()] == [1, 2, 3, 4]
    assert line.stands(ticket(4))
    assert not line.stands(ticket(2, -100))


def test_each_band_shows_its_depth_and_its_oldest_wait() -> None:
    view = lineup(ticket(1), ticket(2, 100), ticket(3)).band_view(10.0)

    assert [(view[band].depth, view[band].oldest_wait) for band in Band] == [(1, 8.0), (2, 9.0), (0, 0.0)]


def test_all_can_be_taken_out_and_some_left_in() -> None:
    line = lineup(ticket(1), ticket(2))

    everybody = line.take_all()
    assert (everybody, len(line)) == ([ticket(1), ticket(2)], 0)

    line.leave(everybody[1:])
    assert list(line) == [ticket(2)]


@given(
    arrivals=st.lists(st.tuples(st.integers(-3, 3), st.sampled_from("AB")), max_size=20),
    moves=st.lists(st.tuples(st.integers(0, 19), st.integers(-3, 3)), max_size=10),
)
@settings(max_examples=100, deadline=None)
def test_the_order_is_that_of_a_sort_whoever_was_moved(
    arrivals: list[tuple[int, str]], moves: list[tuple[int, int]]
) -> None:
    there = {number: ticket(number, *arrival) for number, arrival in enumerate(arrivals)}
    line = lineup(*there.values(), B=1)
    for number, priority in moves:
        if number in there:
            there[number] = line.reprioritise(ticket(number, *arrivals[number]), priority)

    expected = sorted(there.values(), key=lambda each: (-each.priority - (each.model == "B"), each.number))

    assert line.in_order() == expected
