"""Whose turn it is: the best, what made him that, and who may go before a swap."""

from __future__ import annotations

import pytest

from llamaswap.config.model import SerialSettings
from llamaswap.scheduling.budget import SwapBudget
from llamaswap.scheduling.choosing import Choice, before_swap, best, verdict_of
from llamaswap.scheduling.score import Formula
from llamaswap.scheduling.vocabulary import NO_TERM, Facts, Term, Ticket
from llamaswap.scheduling.waiting import WaitingRoom
from support.scheduling_setup import Known

FORMULA = Formula.of(SerialSettings())


def ticket(number: int, model: str, priority: int = 0, arrived: float = 0.0) -> Ticket:
    return Ticket(number=number, model=model, priority=priority, arrived=arrived)


def room(*tickets: Ticket) -> WaitingRoom:
    waiting = WaitingRoom(FORMULA)
    for each in tickets:
        waiting.add(each)
    return waiting


def all_of(_target: str, running: frozenset[str]) -> frozenset[str]:
    return running


def spared(waiting: WaitingRoom, resident: str, seconds: float = 10.0, **runs: float) -> Choice | None:
    """Who may go before C is loaded, which evicts all that runs."""
    budget = SwapBudget(seconds, Known(runs))
    facts = Facts(now=100.0, running=frozenset("AB"), ready=frozenset("AB"))
    return before_swap("C", waiting, frozenset(resident), facts, all_of, budget)


def test_nobody_is_no_choice() -> None:
    with pytest.raises(LookupError):
        best(room(), frozenset())


def test_the_only_one_owes_it_to_nothing() -> None:
    assert best(room(ticket(1, "A")), frozenset("A")) == Choice(ticket(1, "A"), NO_TERM)


def test_a_choice_names_what_made_it() -> None:
    waiting = room(ticket(1, "B", 0), ticket(2, "A", 0), ticket(3, "B", 1, arrived=6000.0))

    assert best(waiting, frozenset("A")).changed_by == {Term.SWAP_AFFINITY}
    assert best(waiting, frozenset()).changed_by == {Term.AGING}


def test_before_a_swap_the_best_of_those_whom_it_ends_may_go() -> None:
    waiting = room(ticket(1, "C", 50), ticket(2, "A", 0), ticket(3, "A", 1), ticket(4, "B", 2))

    assert spared(waiting, "AB", A=4.0, B=5.0) == Choice(
        ticket(4, "B", 2), frozenset({Term.SWAP_BUDGET}), 5_000_000
    )


def test_one_that_is_too_long_lets_a_shorter_one_go() -> None:
    waiting = room(ticket(1, "C", 50), ticket(2, "A", 0), ticket(3, "B", 2))

    choice = spared(waiting, "AB", A=4.0, B=11.0)

    assert choice is not None
    assert choice.ticket.number == 2


def test_who_is_not_ended_or_was_never_measured_does_not_go_before_a_swap() -> None:
    assert spared(room(ticket(1, "C", 50), ticket(2, "D")), "D", D=1.0) is None
    assert spared(room(ticket(1, "C", 50), ticket(2, "A")), "A") is None


def test_what_runs_without_being_resident_has_no_budget() -> None:
    assert spared(room(ticket(1, "C", 50), ticket(2, "A")), "", A=1.0) is None


def test_a_verdict_tells_the_score_and_what_the_budget_paid() -> None:
    choice = Choice(ticket(1, "A", 3, arrived=40.0), frozenset({Term.SWAP_BUDGET}), 2_500_000)

    verdict = verdict_of(choice, FORMULA, Facts(now=100.0), resident=True)

    assert verdict.changed_by == {Term.SWAP_BUDGET}
    assert verdict.metadata == {
        "serial_priority": "3",
        "serial_band": "normal",
        "serial_score": "14",
        "serial_queue_wait_ms": "60000",
        "serial_swap_budget_ms": "2500",
    }
