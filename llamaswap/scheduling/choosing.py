"""Whose turn it is, and what made it so.

The best score goes first.  Two terms of it may have changed who that is, and a
swap budget may let somebody go before the best one.  Knows the waiting room
and the residents; whether the box is free, and what a choice does to it, is
the scheduler's business.
"""

from __future__ import annotations

import msgspec

from llamaswap.scheduling.budget import SwapBudget
from llamaswap.scheduling.score import Formula, waited_us
from llamaswap.scheduling.vocabulary import NO_TERM, Facts, MakeRoom, Term, Ticket, Verdict, band_of
from llamaswap.scheduling.waiting import WaitingRoom

_BY_BUDGET = frozenset({Term.SWAP_BUDGET})


class Choice(msgspec.Struct, frozen=True):
    """Who goes next."""

    ticket: Ticket
    changed_by: frozenset[Term]  # the terms without which it would be another
    cost_us: int = 0  # what it takes from the swap budget; 0 = the score decided


def best(room: WaitingRoom, resident: frozenset[str]) -> Choice:
    """Return whom the score puts first; LookupError when nobody waits.

    Args:
        room: who waits.
        resident: the models somebody waits for that are resident.
    """
    ticket = room.best(resident)
    if len(room) == 1:
        return Choice(ticket, NO_TERM)
    changed = set()
    if room.best_without_aging(resident) != ticket:
        changed.add(Term.AGING)
    if room.best_without_affinity() != ticket:
        changed.add(Term.SWAP_AFFINITY)
    return Choice(ticket, frozenset(changed))


def before_swap(
    swap: str,
    room: WaitingRoom,
    resident: frozenset[str],
    facts: Facts,
    make_room: MakeRoom,
    budget: SwapBudget,
) -> Choice | None:
    """Return who may still go before this model is loaded: the best of those whom the budget can pay for.

    Only the residents that the load would end have one; the others can be asked afterwards.

    Args:
        swap: the model that the best ticket needs, not resident.
        room: who waits.
        resident: as for `best`.
        facts: of the pick.
        make_room: the eviction planner.
        budget: what is left; not changed here.
    """
    costs = budget.affordable(make_room(swap, facts.running) & resident)
    if not costs:
        return None
    ticket = room.best_of(costs)
    return Choice(ticket, _BY_BUDGET, costs[ticket.model])


def verdict_of(choice: Choice, formula: Formula, facts: Facts, *, resident: bool) -> Verdict:
    """Return what is told of a choice.

    Args:
        choice: who goes.
        formula: the score.
        facts: of the pick.
        resident: whether the model is.
    """
    ticket = choice.ticket
    waited = waited_us(ticket, facts.now)
    return Verdict(
        priority=ticket.priority,
        band=band_of(ticket.priority),
        waited_us=waited,
        thousandths=formula.thousandths_after(ticket, waited, resident=resident),
        changed_by=choice.changed_by,
        budget_us=choice.cost_us,
    )
