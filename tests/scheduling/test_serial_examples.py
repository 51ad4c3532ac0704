"""Worked examples: what an operator is told to expect, with the numbers he is told.

Models `A` and `B` evict each other, and the box is busy with `A` until the
moment given.  The defaults hold unless a test says otherwise: 60 s of waiting
per point, 10 points for a ticket that needs no swap.
"""

from __future__ import annotations

from time import perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.config.model import SerialSettings
from llamaswap.scheduling.groups import GroupPlanner
from llamaswap.scheduling.score import Formula, format_thousandths
from llamaswap.scheduling.serial import SerialScheduler
from llamaswap.scheduling.vocabulary import Band, Facts, Term, Ticket
from support.scheduling_box import Box, Life
from support.scheduling_setup import fifo_box, models_named, rivals, serial_box


def busy_until(moment: float, box: Box | None = None) -> Box:
    """Return a box that has run one job of `A`, ticket 1, since 0 s."""
    box = box or serial_box()
    box.fleet.ready.add("A")
    box.arrive("A", job=moment)
    return box


def order(box: Box) -> list[int]:
    """Let everything end; return who was dispatched after the first job, in order."""
    box.settle()
    return box.dispatched[1:]


def test_example_1_bands_go_before_everything_else() -> None:
    box = busy_until(10.0)
    batch = box.arrive("A", -100)
    normal = box.arrive("B", 0)
    interactive = box.arrive("B", 100)

    assert order(box) == [interactive.number, normal.number, batch.number]
    assert [model for model, _ in box.loads] == ["B", "A"]
    assert box.verdicts[interactive.number].score == "100.167"
    assert box.verdicts[interactive.number].metadata["serial_queue_wait_ms"] == "10000"


def test_example_2_affinity_saves_a_swap() -> None:
    box = busy_until(2.0)
    cold = box.arrive("B")
    box.advance(1.0)
    resident = box.arrive("A")

    assert order(box) == [resident.number, cold.number]
    assert len(box.loads) == 1
    assert box.verdicts[resident.number].score == "10.017"
    beaten = Formula.of(SerialSettings()).thousandths(cold, 2.0, resident=False)
    assert format_thousandths(beaten) == "0.033"
    assert box.verdicts[resident.number].changed_by == {Term.SWAP_AFFINITY}
    assert box.verdicts[resident.number].metadata == {
        "serial_priority": "0",
        "serial_band": "normal",
        "serial_score": "10.017",
        "serial_queue_wait_ms": "1000",
    }
    # Dispatched at 3 s; its load of 2 s is no part of the wait.
    assert box.verdicts[cold.number].metadata["serial_queue_wait_ms"] == "3000"
    assert box.served_at[cold.number] == 5.0


def test_example_3_affinity_is_worth_six_hundred_seconds_of_arrival() -> None:
    box = busy_until(602.0)
    cold = box.arrive("B")
    box.advance(601.0)
    resident = box.arrive("A")

    assert order(box) == [cold.number, resident.number]
    assert box.verdicts[cold.number].score == "10.033"
    assert box.verdicts[cold.number].changed_by == {Term.AGING}


@pytest.mark.parametrize(("later", "first"), [(599.0, "A"), (600.0, "B"), (601.0, "B")])
def test_example_3_at_the_edge_of_the_window(later: float, first: str) -> None:
    box = busy_until(602.0)
    box.arrive("B")
    box.advance(later)
    box.arrive("A")

    assert box.tickets[order(box)[0] - 1].model == first


def test_example_4_a_bonus_orders_a_band_and_never_leaves_it() -> None:
    box = busy_until(200.0)
    free, pro, best = (box.arrive("A", priority) for priority in (-100, -99, -98))
    box.advance(100.0)
    normal = box.arrive("A", 0)

    assert order(box) == [normal.number, best.number, pro.number, free.number]
    assert {box.verdicts[ticket.number].band for ticket in (free, pro, best)} == {Band.BATCH}


def test_example_5_a_band_is_a_head_start_of_six_thousand_seconds() -> None:
    box = busy_until(6002.0, serial_box(bonus=0))
    batch = box.arrive("A", -100)
    box.advance(5999.0)
    early = box.arrive("A")
    box.advance(2.0)
    late = box.arrive("A")

    assert order(box) == [early.number, batch.number, late.number]
    assert box.verdicts[batch.number].changed_by == {Term.AGING}


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from((0.0, 0.5, 7.0))), max_size=30))
@settings(max_examples=50, deadline=None)
def test_example_6_without_affinity_equal_priorities_are_served_as_they_came(
    arrivals: list[tuple[str, float]],
) -> None:
    box = serial_box("ABC", bonus=0)
    for model, pause in arrivals:
        box.arrive(model, 5)
        box.advance(pause)

    box.settle()

    assert box.served == [ticket.number for ticket in box.tickets]


def test_example_7_without_aging_a_steady_stream_starves_batch_for_ever() -> None:
    box = busy_until(1.0, serial_box(divisor=0))
    batch = box.arrive("A", -100)

    for _ in range(1000):
        box.arrive("A", 100, job=1.0)
        box.advance(1.0)

    assert box.where(batch) is Life.WAITING
    assert len(box.served) == 1001


def test_example_7_with_aging_the_same_stream_does_not() -> None:
    box = busy_until(1.0, serial_box(divisor=1.0))
    batch = box.arrive("A", -100)

    for _ in range(203):
        box.arrive("A", 100, job=1.0)
        box.advance(1.0)

    # 200 points behind at one point a second: nobody who comes after 200 s passes it.
    assert box.dispatched_at[batch.number] == 201.0


def test_example_8_under_fifo_the_header_is_added_to_the_models_priority() -> None:
    box = busy_until(10.0, fifo_box("ABC", priorities={"B": 10}))
    configured = box.arrive("B", -100)
    plain = box.arrive("C")

    assert order(box) == [plain.number, configured.number]
    assert box.verdicts[configured.number].metadata == {"fifo_priority": "-90"}


def test_example_9_a_pick_from_a_hundred_thousand_costs_like_one_from_a_hundred() -> None:
    few, many = _fastest_pick(100), _fastest_pick(100_000)

    # A scan of all who wait would be 1000 times slower; a heap per model is about even.
    assert many < 30 * few, f"{few * 1e6:.0f} us with 100, {many * 1e6:.0f} us with 100 000"


def _fastest_pick(waiting: int, picks: int = 40) -> float:
    """Return the seconds of the fastest of some picks among so many tickets over 50 models."""
    names = [f"m{n}" for n in range(50)]
    planner = GroupPlanner(rivals(names))
    scheduler = SerialScheduler(SerialSettings(), models_named(names), planner.make_room)
    facts = Facts(now=1e6, running=frozenset({"m0"}), ready=frozenset({"m0"}))
    for number in range(waiting + 1):
        ticket = Ticket(number=number, model=names[number % 50], priority=-(number % 7), arrived=number / 8)
        scheduler.arrived(ticket, facts)
    times = []
    for _ in range(picks):
        (job,) = scheduler.view(facts.now).jobs
        begun = perf_counter()
        scheduler.released(job, facts)
        times.append(perf_counter() - begun)
    return min(times)
