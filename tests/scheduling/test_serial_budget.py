"""What a swap budget does: fewer swaps for short jobs, at a price that has a bound."""

from __future__ import annotations

from llamaswap.config.model import GroupConfig
from llamaswap.scheduling.vocabulary import Term
from support.scheduling_box import Box
from support.scheduling_setup import serial_box

RUNS = {"A": 2.0, "B": 2.0}


def replay(swap_budget: float) -> Box:
    """Return a box after a small trace: two users, a model each, a request of each every 15 s.

    A load takes 30 s.  Half-way somebody urgent comes, who needs a third model.
    """
    box = serial_box("ABC", swap_budget=swap_budget, runs=RUNS, bonus=0)
    box.fleet.load_time = 30.0
    for number in range(40):
        box.arrive("AB"[number % 2], job=2.0)
        box.advance(7.5)
        if number == 20:
            box.arrive("C", 100, job=2.0)
    box.settle()
    return box


def longest_wait(box: Box, model: str) -> float:
    return max(
        box.dispatched_at[ticket.number] - ticket.arrived for ticket in box.tickets if ticket.model == model
    )


def test_a_small_trace_swaps_less_and_waits_less_and_the_urgent_one_waits_for_a_job_and_the_budget() -> None:
    without, budgeted = replay(0.0), replay(10.0)

    assert (len(without.loads), len(budgeted.loads)) == (41, 9)
    assert [longest_wait(without, model) for model in "AB"] == [963.0, 987.5]
    assert [longest_wait(budgeted, model) for model in "AB"] == [83.0, 89.5]
    assert longest_wait(without, "C") <= 30.0 + 2.0
    assert 30.0 + 2.0 < longest_wait(budgeted, "C") <= 30.0 + 2.0 + 10.0


def start(swap_budget: float = 5.0, names: str = "AB", **runs: float) -> Box:
    """Return a box in which A has a job of 10 s, and somebody better waits for B."""
    box = serial_box(names, swap_budget=swap_budget, runs=runs or RUNS)
    box.fleet.ready.add("A")
    box.arrive("A", job=10.0)
    box.arrive("B", 100)
    return box


def test_what_fits_goes_before_the_swap_and_says_so() -> None:
    box = start()
    for _ in range(3):
        box.arrive("A")

    box.settle()

    assert box.dispatched == [1, 3, 4, 2, 5]
    assert [box.verdicts[number].changed_by for number in (3, 2)] == [{Term.SWAP_BUDGET}, frozenset()]
    assert box.verdicts[3].metadata["serial_swap_budget_ms"] == "2000"
    assert "serial_swap_budget_ms" not in box.verdicts[2].metadata


def test_the_best_of_them_goes_first() -> None:
    box = start(2.0)
    box.arrive("A", -100)
    box.arrive("A", 5)

    box.settle()

    assert box.dispatched == [1, 4, 2, 3]


def test_without_measured_times_there_is_no_budget() -> None:
    box = start(1000.0, B=1.0)
    box.arrive("A")

    box.settle()

    assert box.dispatched == [1, 2, 3]


def test_what_is_spent_comes_back_with_the_next_load_only() -> None:
    box = start(2.0)
    box.arrive("A")
    box.advance(10.5)
    box.arrive("A")  # while the first runs on the budget
    box.settle()
    assert box.dispatched == [1, 3, 2, 4]

    box.arrive("A", job=10.0)
    box.arrive("B", 100)
    box.arrive("A")
    box.settle()
    assert box.dispatched[4:] == [5, 7, 6]


def test_work_that_costs_no_better_one_anything_is_free() -> None:
    box = start(2.0)
    for _ in range(2):
        box.arrive("A", 101)
    box.arrive("A")

    box.settle()

    assert box.dispatched == [1, 3, 4, 5, 2]


def test_a_load_that_ends_nothing_is_not_put_off() -> None:
    keep = GroupConfig(id="keep", persistent=True, exclusive=False, swap=False, members=("B",))
    box = serial_box("AB", swap_budget=50.0, runs=RUNS, groups=(GroupConfig(id="g", members=("A",)), keep))
    box.fleet.ready.add("A")
    box.arrive("A", job=10.0)
    box.arrive("B", 100)
    box.arrive("A")

    box.settle()

    assert box.dispatched == [1, 2, 3]


def test_a_paused_ticket_is_not_let_go_by_the_budget() -> None:
    box = start()
    low = box.arrive("A", -1)
    box.pause(box.scheduler.band(low))

    box.settle()

    assert box.dispatched == [1, 2]


def test_a_width_does_not_widen_what_the_budget_lets_go() -> None:
    box = serial_box("AB", swap_budget=10.0, runs=RUNS, width={"A": 4})
    box.fleet.ready.add("A")
    box.arrive("A", job=10.0)
    box.arrive("B", 100)
    for _ in range(3):
        box.arrive("A", job=2.0)

    box.advance(11.0)
    assert box.dispatched == [1, 3]

    box.settle()
    assert box.dispatched == [1, 3, 4, 5, 2]


def test_without_a_budget_nothing_changes() -> None:
    box = start(0.0)
    box.arrive("A")

    box.settle()

    assert box.dispatched == [1, 2, 3]


def test_a_reload_gives_no_budget_anew() -> None:
    box = start(4.0)
    for _ in range(4):
        box.arrive("A", job=2.0)
    box.advance(11.0)
    assert box.dispatched == [1, 3]

    box.reload(serial_box("AB", swap_budget=4.0, runs=RUNS))
    box.settle()

    assert box.dispatched == [1, 3, 4, 2, 5, 6]


def test_a_smaller_budget_after_a_reload_is_spent_and_no_less_than_nothing_is_left() -> None:
    box = start(4.0)
    late = [box.arrive("A", job=2.0) for _ in range(4)][-1]
    box.advance(13.0)
    assert box.dispatched == [1, 3, 4]

    box.reload(serial_box("AB", swap_budget=2.0, runs=RUNS))
    other = box.scheduler.explain(late, box.facts)
    better = box.arrive("B", 100)

    assert (other.budget, box.scheduler.explain(better, box.facts).budget) == (0.0, 0.0)
    box.settle()
    assert box.dispatched[:4] == [1, 3, 4, 2]
