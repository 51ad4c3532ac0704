"""Why a ticket stands where it stands, and who may still pass it.

All of it is read off the same keys by which the scheduler picks (see
`llamaswap.scheduling.score`), so that it cannot say anything else than what
happens.  Places and reasons are those of this moment's residents; the order in
which tickets will go through the swaps to come is `forecast.plan`'s.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import Protocol

import msgspec

from llamaswap.scheduling.forecast import Lanes
from llamaswap.scheduling.overtaking import Bound, bounds
from llamaswap.scheduling.score import Formula, microseconds
from llamaswap.scheduling.vocabulary import Facts, Ticket

__all__ = ["Ahead", "Bound", "Explanation", "Order", "Terms", "explain", "reasons", "terms"]

_Lane = Sequence[tuple[int, int]]


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The score of a ticket, term by term."""

    priority: int  # points
    affinity: int  # points; 0 unless its model is resident
    aging: int  # thousandths of a point
    score: int  # thousandths of a point: the sum


class Ahead(msgspec.Struct, frozen=True, kw_only=True):
    """One ticket that would go before the one that is explained."""

    ticket: Ticket
    by: tuple[str, ...]  # see `reasons`; never empty


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """All that can be said of one waiting ticket."""

    ticket: Ticket
    terms: Terms
    position: int  # 1 = next
    position_without_aging: int
    position_without_affinity: int
    ahead: tuple[Ahead, ...]  # the first of them, in their order
    ahead_total: int
    bounds: tuple[Bound, ...]  # for normal, then for interactive requests
    budget: float | None = None
    """Seconds that the swap budget may give to residents before it, anew after each load, whatever `bounds`
    say; None: there is no such budget."""


class Order(Lanes, Protocol):
    """What an explanation reads of a waiting room."""

    def lanes_by_priority(self) -> Mapping[str, Sequence[tuple[int, int]]]:
        """Return (minus the priority, number) of each model's waiting tickets, best first."""


def terms(ticket: Ticket, formula: Formula, now: float, *, resident: bool) -> Terms:
    """Return what the score of a ticket is made of at `now`, in seconds on the clock of its arrival."""
    affinity = formula.bonus if resident else 0
    score = formula.thousandths(ticket, now, resident=resident)
    return Terms(
        priority=ticket.priority,
        affinity=affinity,
        aging=score - 1000 * (ticket.priority + affinity),
        score=score,
    )


def explain(
    ticket: Ticket,
    room: Order,
    *,
    formula: Formula,
    facts: Facts,
    resident: frozenset[str],
    most: int = 100,
    offset: int = 0,
    swap_budget: float | None = None,
) -> Explanation:
    """Return why a waiting ticket stands where it stands; O(models log n + most log models).

    Args:
        ticket: one that waits in the room.
        room: who waits.
        formula: what the room is ordered by.
        facts: of this moment.
        resident: the models somebody waits for that are resident.
        most: how many of those ahead are listed.
        offset: the largest that the configuration adds to a caller's priority; points.
        swap_budget: seconds that are left of it; None: there is none.
    """
    lanes = room.lanes()
    own, bonus = formula.key(ticket), formula.affinity_key()
    before = _before(lanes, own, ticket, resident, bonus)
    total = sum(before.values())
    home = ticket.model in resident
    return Explanation(
        ticket=ticket,
        terms=terms(ticket, formula, facts.now, resident=home),
        position=1 + total,
        position_without_aging=1
        + sum(_before(room.lanes_by_priority(), ticket.priority, ticket, resident, formula.bonus).values()),
        position_without_affinity=1 + sum(_before(lanes, own, ticket, resident, 0).values()),
        ahead=tuple(
            Ahead(ticket=other, by=reasons(other, ticket, formula, resident))
            for other in islice(_first(room, lanes, before, resident, bonus), most)
        ),
        ahead_total=total,
        bounds=bounds(ticket, formula, facts.now, offset),
        budget=0.0 if home and swap_budget is not None else swap_budget,
    )


def reasons(ahead: Ticket, behind: Ticket, formula: Formula, resident: frozenset[str]) -> tuple[str, ...]:
    """Return by what one waiting ticket is ahead of another.

    These are the terms of the score, of "priority", "swap_affinity" and
    "aging", without which it would not be ahead: each left out alone, for
    both tickets, the arrival order breaking ties.  Where no term is needed
    because others would do as well, all that speak for it are named: a higher
    priority, a resident model against one that is not, an earlier "arrival".
    """
    divisor = formula.divisor_us or 1
    priority = (ahead.priority - behind.priority) * divisor
    affinity = ((ahead.model in resident) - (behind.model in resident)) * formula.affinity_key()
    aging = microseconds(behind.arrived) - microseconds(ahead.arrived) if formula.divisor_us else 0
    earlier = ahead.number < behind.number
    needed = [
        name
        for name, lead in (
            ("priority", affinity + aging),
            ("swap_affinity", priority + aging),
            ("aging", priority + affinity),
        )
        if not (lead > 0 or (lead == 0 and earlier))
    ]
    if needed:
        return tuple(needed)
    speaking = (("priority", priority > 0), ("swap_affinity", affinity > 0), ("arrival", earlier))
    return tuple(name for name, speaks in speaking if speaks)


def _before(
    lanes: Mapping[str, _Lane], own: int, ticket: Ticket, resident: frozenset[str], bonus: int
) -> dict[str, int]:
    """Return how many of each model go before a ticket whose key without affinity is `own`."""
    rank = -own - (bonus if ticket.model in resident else 0)
    return {
        model: bisect_left(lane, (rank + bonus if model in resident else rank, ticket.number))
        for model, lane in lanes.items()
    }


def _first(
    room: Lanes,
    lanes: Mapping[str, _Lane],
    before: Mapping[str, int],
    resident: frozenset[str],
    bonus: int,
) -> Iterator[Ticket]:
    """Yield those ahead, best first."""
    shifted = [
        _shifted(islice(lane, before[model]), bonus if model in resident else 0)
        for model, lane in lanes.items()
        if before[model]
    ]
    for _, number in merge(*shifted):
        other = room.ticket(number)
        if other is not None:
            yield other


def _shifted(lane: Iterable[tuple[int, int]], bonus: int) -> Iterator[tuple[int, int]]:
    return ((rank - bonus, number) for rank, number in lane)
