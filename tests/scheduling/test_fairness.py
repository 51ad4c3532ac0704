"""Nobody is overtaken by himself: one client's requests for one model, at one priority, start as sent."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from support.scheduling_box import Box
from support.scheduling_setup import fifo_box, serial_box

NAMES = "ABC"
MINE = 200  # numbered requests of one client


def boxes() -> list[Box]:
    """Every scheduler, with the settings that might reorder something."""
    return [
        fifo_box(NAMES, limits=dict.fromkeys(NAMES, 10_000)),
        fifo_box(NAMES, limits=dict.fromkeys(NAMES, 10_000), priorities={"A": -5, "B": 5}),
        serial_box(NAMES),
        serial_box(NAMES, divisor=0.0, bonus=99),
        serial_box(NAMES, divisor=0.3, bonus=99),
        serial_box(NAMES, divisor=7.0, bonus=0),
    ]


def send_among_others(box: Box, dice: random.Random) -> list[int]:
    """One client sends its requests in a row while others interfere; returns their numbers."""
    mine = []
    for _ in range(MINE):
        for _ in range(dice.randrange(3)):
            box.arrive(dice.choice(NAMES), dice.choice((-98, -1, 0, 0, 1, 100)), job=dice.choice((0.1, 2.0)))
        mine.append(box.arrive("A", job=dice.choice((0.05, 0.5, 3.0))).number)
        box.advance(dice.choice((0.0, 0.0, 0.2, 4.0)))
    return mine


@pytest.mark.parametrize("which", range(len(boxes())))
def test_case_048_two_hundred_requests_of_a_client_start_in_the_order_in_which_they_were_sent(
    which: int,
) -> None:
    box, dice = boxes()[which], random.Random(which)
    box.fleet.load_time = 1.0

    mine = send_among_others(box, dice)
    box.settle()

    assert [number for number in box.dispatched if number in set(mine)] == mine
    assert [number for number in box.served if number in set(mine)] == mine


@pytest.mark.parametrize("which", range(len(boxes())))
def test_case_048_and_so_they_do_when_the_scheduler_changes_in_between(which: int) -> None:
    box, dice = boxes()[which], random.Random(which)
    box.fleet.load_time = 1.0

    mine = send_among_others(box, dice)
    box.reload(boxes()[(which + 1) % len(boxes())])
    mine += send_among_others(box, dice)
    box.settle()

    assert [number for number in box.dispatched if number in set(mine)] == mine


def test_case_048_each_waits_no_less_than_the_one_behind() -> None:
    box, dice = serial_box(NAMES, divisor=1.0), random.Random(48)

    mine = send_among_others(box, dice)
    box.settle()

    starts = [box.dispatched_at[number] for number in mine]
    assert all(earlier <= later for earlier, later in pairwise(starts))
