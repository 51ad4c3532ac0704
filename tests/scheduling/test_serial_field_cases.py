"""Cases from the field that need no process: what affinity and aging are worth."""

from __future__ import annotations

import pytest

from support.scheduling_box import Box
from support.scheduling_setup import fifo_box, serial_box

HOUR, DAY = 3600.0, 86_400.0


def endless(box: Box, model: str, until: float, job: float) -> None:
    """Let two of a model wait at any moment, until so many seconds are over.

    Args:
        job: seconds that each takes, and between two arrivals.
    """
    box.arrive(model, job=job)
    box.arrive(model, job=job)
    while box.clock.seconds() < until:
        box.arrive(model, job=job)
        box.advance(job)


@pytest.mark.parametrize(
    ("divisor", "bonus", "window"),
    [(60.0, 0, 0.0), (60.0, 10, 600.0), (60.0, 99, 5940.0), (1.0, 10, 10.0)],
    ids=["no affinity", "the defaults", "the most", "quick aging"],
)
def test_case_044_a_cold_request_waits_as_long_as_affinity_is_worth_and_no_longer(
    divisor: float, bonus: int, window: float
) -> None:
    job = max(1.0, window / 100.0)
    box = serial_box(divisor=divisor, bonus=bonus)
    box.fleet.ready.add("A")
    box.arrive("A", job=job)
    cold = box.arrive("B")

    endless(box, "A", window + 10.0 * job, job)

    # Those that wait beside it are three jobs old at most.
    assert window <= box.dispatched_at[cold.number] <= window + 5.0 * job


def test_case_044_without_aging_a_cold_request_waits_for_as_long_as_warm_ones_come() -> None:
    """By design, and `agingDivisor: 0` beside a bonus is a warning for that reason."""
    box = serial_box(divisor=0.0, bonus=10)
    box.fleet.ready.add("A")
    box.arrive("A")
    cold = box.arrive("B")

    endless(box, "A", 2 * DAY, HOUR)
    assert cold.number not in box.dispatched_at

    box.settle()
    assert cold.number in box.dispatched_at


@pytest.mark.parametrize("box", [serial_box("ABC"), fifo_box("ABC")], ids=["serial", "fifo"])
def test_case_043_a_b_a_a_c_a_b_c_takes_three_loads_and_keeps_the_order_within_each(box: Box) -> None:
    box.fleet.load_time = 2.0

    tickets = [box.arrive(model) for model in "ABAACABC"]
    box.settle()

    assert [model for model, _ in box.loads] == ["A", "B", "C"]
    for model in "ABC":
        sent = [ticket.number for ticket in tickets if ticket.model == model]
        assert [number for number in box.served if number in sent] == sent
