"""The waiting room: who would go under which formula, and that leaving leaves nothing behind."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.config.model import SerialSettings
from llamaswap.scheduling.score import Formula
from llamaswap.scheduling.vocabulary import Band, Ticket
from llamaswap.scheduling.waiting import WaitingRoom

NOBODY: frozenset[str] = frozenset()


def room(divisor: float = 60.0, bonus: int = 10) -> WaitingRoom:
    return WaitingRoom(Formula.of(SerialSettings(aging_divisor=divisor, swap_affinity_bonus=bonus)))


def ticket(number: int, model: str = "A", priority: int = 0, arrived: float = 0.0) -> Ticket:
    return Ticket(number=number, model=model, priority=priority, arrived=arrived)


def filled(*tickets: Ticket, divisor: float = 60.0, bonus: int = 10) -> WaitingRoom:
    waiting = room(divisor, bonus)
    for each in tickets:
        waiting.add(each)
    return waiting


def test_an_empty_room_has_no_best() -> None:
    with pytest.raises(LookupError):
        room().best(NOBODY)


def test_the_most_urgent_goes_first() -> None:
    assert filled(ticket(1, priority=-1), ticket(2, priority=3), ticket(3)).best(NOBODY).number == 2


def test_equals_keep_arrival_order_within_a_model_and_across() -> None:
    assert filled(ticket(1), ticket(2)).best(NOBODY).number == 1
    assert filled(ticket(1, "B"), ticket(2, "A")).best(NOBODY).number == 1
    assert filled(ticket(1, "A"), ticket(2, "B")).best(NOBODY).number == 1


def test_arrival_order_is_by_number_not_by_text() -> None:
    assert filled(ticket(9, "A"), ticket(10, "B")).best(NOBODY).number == 9


def test_a_resident_model_wins_a_near_tie_only() -> None:
    near = filled(ticket(1, "B", 9), ticket(2, "A", 0))
    assert near.best(frozenset("A")).number == 2
    far = filled(ticket(1, "B", 11), ticket(2, "A", 0))
    assert far.best(frozenset("A")).number == 1


def test_an_exact_tie_with_affinity_is_broken_by_arrival() -> None:
    assert filled(ticket(1, "B", 10), ticket(2, "A", 0)).best(frozenset("A")).number == 1
    assert filled(ticket(1, "A", 0), ticket(2, "B", 10)).best(frozenset("A")).number == 1


def test_each_term_can_be_left_out() -> None:
    waiting = filled(
        ticket(1, "B", 0, arrived=0.0), ticket(2, "B", 1, arrived=6000.0), ticket(3, "A", 0, arrived=6000.0)
    )

    assert waiting.best(frozenset("A")).number == 1
    assert waiting.best_without_affinity().number == 1
    assert waiting.best_without_aging(frozenset("A")).number == 3
    assert waiting.best_without_aging(NOBODY).number == 2


def test_without_aging_both_formulas_agree() -> None:
    waiting = filled(ticket(1, "B", 9), ticket(2, "A", 0), divisor=0)

    assert waiting.best(frozenset("A")) == waiting.best_without_aging(frozenset("A")) == ticket(2, "A", 0)


def test_a_ticket_that_left_is_never_the_best_again() -> None:
    first, second = ticket(1, priority=5), ticket(2)
    waiting = filled(first, second)

    waiting.remove(first)

    assert waiting.best(NOBODY) == waiting.best_without_aging(NOBODY) == second
    assert first not in waiting
    assert second in waiting


def test_who_does_not_wait_cannot_leave() -> None:
    with pytest.raises(KeyError):
        filled(ticket(1)).remove(ticket(2))


def test_a_model_nobody_waits_for_is_forgotten() -> None:
    waiting = filled(ticket(1, "A"), ticket(2, "B"))

    waiting.remove(ticket(1, "A"))

    assert tuple(waiting.lanes()) == ("B",)
    assert (waiting.count("A"), waiting.of("A"), len(waiting)) == (0, (), 1)


def test_the_tickets_of_a_model_come_in_arrival_order() -> None:
    waiting = filled(ticket(1, priority=-5), ticket(2, "B"), ticket(3, priority=5))

    assert [each.number for each in waiting.of("A")] == [1, 3]
    assert waiting.count("A") == 2
    assert {each.number for each in waiting} == {1, 2, 3}


def test_a_ticket_is_found_by_its_number() -> None:
    waiting = filled(ticket(1), ticket(2, priority=-100))

    assert (waiting.ticket(2), waiting.ticket(3)) == (ticket(2, priority=-100), None)
    assert waiting.of_band(Band.BATCH) == (ticket(2, priority=-100),)


def test_the_best_of_some_models_is_found_among_them() -> None:
    waiting = filled(ticket(1, "A", 9), ticket(2, "B", 1), ticket(3, "C", 2))

    assert waiting.best_of({"B", "C"}).number == 3


def test_lanes_are_in_order_with_and_without_aging_and_keep_up() -> None:
    waiting = filled(
        ticket(1, priority=0, arrived=0.0), ticket(2, priority=1, arrived=90.0), ticket(3, "B"), divisor=60
    )
    assert waiting.lanes() == {"A": [(0, 1), (30_000_000, 2)], "B": [(0, 3)]}
    assert waiting.lanes_by_priority() == {"A": [(-1, 2), (0, 1)], "B": [(0, 3)]}

    waiting.remove(ticket(2, priority=1, arrived=90.0))
    waiting.remove(ticket(3, "B"))
    waiting.add(ticket(4, priority=2))

    assert waiting.lanes() == {"A": [(-120_000_000, 4), (0, 1)]}
    assert waiting.lanes_by_priority() == {"A": [(-2, 4), (0, 1)]}


def test_who_is_taken_out_may_come_back_with_another_priority() -> None:
    waiting = filled(ticket(1, priority=5), ticket(2, priority=3), ticket(3, priority=4))

    waiting.take_out((ticket(1, priority=5),))
    waiting.put_back((ticket(1, priority=-5),))

    assert [each.number for each in waiting.in_order(NOBODY)] == [3, 2, 1]
    assert waiting.best(NOBODY).number == waiting.best_without_aging(NOBODY).number == 3
    assert [number for _, number in waiting.lanes()["A"]] == [3, 2, 1]
    assert [each.number for each in waiting.of("A")] == [1, 2, 3]
    assert waiting.band_view(9.0)[Band.NORMAL].depth == 2


def test_each_band_shows_its_depth_and_its_oldest_wait() -> None:
    waiting = filled(
        ticket(1, priority=102, arrived=1.0), ticket(2, priority=50, arrived=2.0), ticket(3, arrived=3.0)
    )

    view = waiting.band_view(10.0)

    assert {band: (look.depth, look.oldest_wait) for band, look in view.items()} == {
        Band.INTERACTIVE: (1, 9.0),
        Band.NORMAL: (2, 8.0),
        Band.BATCH: (0, 0.0),
    }


def test_departures_in_any_order_keep_the_pick_right_and_the_heaps_small() -> None:
    dice = random.Random(7)
    tickets = [ticket(n, dice.choice("AB"), dice.randrange(-200, 200), float(n)) for n in range(2000)]
    waiting = filled(*tickets)
    staying = tickets[::20]

    for leaver in dice.sample([each for each in tickets if each not in staying], 1900):
        waiting.remove(leaver)

    heaps = [heap for queue in waiting._queues.values() for heap in (queue.by_key, queue.by_priority)]
    assert all(len(heap) <= 2 * 100 for heap in heaps)
    expected = sorted(staying, key=lambda t: (t.priority * 60 - t.arrived, -t.number), reverse=True)
    order = []
    while len(waiting):
        order.append(waiting.best(NOBODY))
        waiting.remove(order[-1])
    assert order == expected


@given(
    waits=st.lists(st.tuples(st.sampled_from("ABC"), st.integers(-3, 3), st.integers(0, 90)), max_size=25),
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=12),
    resident=st.frozensets(st.sampled_from("ABC")),
    divisor=st.sampled_from([0.0, 0.5, 60.0]),
)
@settings(max_examples=200, deadline=None)
def test_a_place_is_how_many_would_go_before(
    waits: list[tuple[str, int, int]],
    steps: list[tuple[bool, int]],
    resident: frozenset[str],
    divisor: float,
) -> None:
    tickets = [ticket(n, model, priority, float(at)) for n, (model, priority, at) in enumerate(waits)]
    waiting = filled(*tickets, divisor=divisor, bonus=2)
    for comes, place in steps:  # some are asked for in between, so that what is remembered has to keep up
        staying = list(waiting)
        if comes:
            waiting.add(ticket(100 + len(tickets), "B", place % 4, 5.0))
            tickets.append(ticket(100 + len(tickets), "B", place % 4, 5.0))
        elif staying:
            waiting.position(staying[0], resident)
            waiting.remove(staying[place % len(staying)])

    places = {waiting.position(each, resident): each for each in waiting}

    assert sorted(places) == list(range(1, len(waiting) + 1))
    for place in sorted(places):
        assert waiting.best(resident) == places[place]
        waiting.remove(places[place])


def test_a_place_counts_models_that_somebody_came_for_only_after_it_was_asked_for() -> None:
    waiting = filled(ticket(1, "A"), ticket(2, "B"))
    assert waiting.position(ticket(2, "B"), NOBODY) == 2

    waiting.add(ticket(3, "C", priority=5))
    assert waiting.position(ticket(2, "B"), NOBODY) == 3
    waiting.remove(ticket(3, "C", priority=5))
    assert waiting.position(ticket(2, "B"), NOBODY) == 2


def test_a_place_is_that_among_the_residents_who_are_asked_about_now() -> None:
    waiting = filled(ticket(1, "A"), ticket(2, "B"))

    asked = [frozenset("B"), NOBODY, frozenset("A"), frozenset("AB"), frozenset("B")]

    assert [waiting.position(ticket(2, "B"), resident) for resident in asked] == [1, 2, 2, 2, 1]


def test_ten_thousand_can_all_ask_for_their_place_while_others_come_and_go() -> None:
    tickets = [ticket(n, f"m{n % 50}", n % 7, float(n)) for n in range(10_000)]
    waiting = filled(*tickets)
    began = time.process_time()

    for each in tickets:
        waiting.position(each, frozenset({"m1"}))
    for each in tickets[:1000]:
        waiting.remove(each)
        waiting.position(tickets[-1], NOBODY)
        waiting.add(each)

    # 0.6 s on a slow machine; looking at everybody for each question would take a minute.
    assert time.process_time() - began < 10.0
