"""Who goes when, if nobody else comes.

The order is that of the scheduler's own picks (`pick_order`), the times are
those of a small set of equally likely futures (`timeline`, `samples`).  Nobody
who is not here yet is foreseen, nobody leaves, and no load fails: somebody who
comes and is better makes every forecast behind him too short.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NotRequired, Protocol, TypedDict, Unpack

import msgspec

from llamaswap.scheduling.budget import SwapBudget
from llamaswap.scheduling.estimates import Estimates, Spread
from llamaswap.scheduling.pick_order import Pick, Procession
from llamaswap.scheduling.samples import Times, median_and_p90
from llamaswap.scheduling.score import Formula, microseconds
from llamaswap.scheduling.timeline import Job, Timeline
from llamaswap.scheduling.vocabulary import Facts, MakeRoom, Ticket

__all__ = ["Eta", "Job", "Lanes", "Planned", "eta_of", "plan"]

DRAWN = 100
"""Tickets passed over of which each has its own draw; of more only mean and variance are kept."""

WALKED = 1000
"""Picks that are made on the way to one ticket; those after them are counted by model."""


class Eta(msgspec.Struct, frozen=True):
    """Seconds from now until a dispatch: half of such tickets go by `p50`, nine of ten by `p90`."""

    p50: float
    p90: float  # never below p50


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """One waiting ticket in its turn."""

    ticket: Ticket
    swap: bool  # needs a load when its turn comes, if only to let others go
    eta: Eta | None  # None: something ahead was never measured, or nobody can say
    load: Spread | None  # of its own load, if its model must be started and that was measured
    budget: bool = False  # goes before a better one because the swap budget lets it


class Lanes(Protocol):
    """What a forecast reads of a waiting room."""

    def lanes(self) -> Mapping[str, Sequence[tuple[int, int]]]:
        """Return (minus the key without affinity, number) of each model's waiting tickets, best first."""

    def ticket(self, number: int) -> Ticket | None:
        """Return the waiting ticket of this number."""


class Known(TypedDict):
    """What a forecast knows besides the room."""

    formula: Formula
    """What the room is ordered by."""
    jobs: Sequence[Job]
    """Who holds the box."""
    facts: Facts
    """What runs and what is ready now."""
    make_room: MakeRoom
    """The eviction planner."""
    estimates: Estimates
    """What was measured."""
    width: Mapping[str, int]
    """Model to jobs at once, where that is more than 1."""
    swap_budget: float
    """Seconds of estimated work that may go before a swap; 0 = none."""
    budget_spent: NotRequired[float]
    """Seconds of it that have gone since the last load; 0 unless it is said."""


def plan(room: Lanes, *, skip: int = 0, **known: Unpack[Known]) -> Iterator[Planned]:
    """Yield the waiting tickets in the order in which they will go if nobody comes, lazily.

    To be used up before anybody comes or goes: it reads the room as it walks.

    Args:
        room: who waits and may go.
        skip: how many of the first are not yielded; cheaper than to throw them away.
        known: see `Known`.
    """
    procession, line = _begin(room, known)
    estimates = known["estimates"]
    for turn, pick in enumerate(procession):
        ticket = room.ticket(pick.number)
        if turn < skip:
            _pass(line, pick, turn, ticket)
        elif ticket is not None:
            yield Planned(
                ticket=ticket,
                swap=pick.swap,
                eta=_eta(line.dispatch(pick, brief=ticket.brief)),
                load=estimates.load(pick.model) if pick.start else None,
                budget=pick.budget,
            )


def eta_of(ticket: Ticket, room: Lanes, **known: Unpack[Known]) -> Eta | None:
    """Return when one waiting ticket will go; None if it does not wait or nobody can say.

    Walks as `plan` does, but `WALKED` picks at most.  Of those that are still
    ahead then only how many of each model is known, by priority and age, and
    loads are taken to be as frequent among them as before.

    Args:
        ticket: whose turn is asked for.
        room: as for `plan`.
        known: see `Known`.
    """
    if room.ticket(ticket.number) is None:
        return None
    procession, line = _begin(room, known)
    for turn, pick in enumerate(procession):
        if pick.number == ticket.number:
            return _eta(line.dispatch(pick))
        _pass(line, pick, turn, room.ticket(pick.number))
        if turn + 1 == WALKED:
            break
    line.pass_over_many(_ahead(ticket, room, known["formula"], procession), WALKED - DRAWN)
    return _eta(line.free())


def _begin(room: Lanes, known: Known) -> tuple[Procession, Timeline]:
    """Return the picks to come, and the box that takes them up."""
    jobs, facts, estimates = known["jobs"], known["facts"], known["estimates"]
    budget = SwapBudget(known["swap_budget"], estimates)
    budget.spend(microseconds(known.get("budget_spent", 0.0)))
    loading = [job.ticket.model for job in jobs if job.loading]
    bonus = known["formula"].affinity_key()
    procession = Procession(room.lanes(), bonus, known["make_room"], budget, facts, loading)
    return procession, Timeline(estimates, known["width"], jobs, facts.now)


def _pass(line: Timeline, pick: Pick, turn: int, ticket: Ticket | None) -> None:
    brief = ticket is not None and ticket.brief
    if turn < DRAWN:
        line.dispatch(pick, brief=brief)
    else:
        line.pass_over(pick, brief=brief)


def _ahead(ticket: Ticket, room: Lanes, formula: Formula, procession: Procession) -> dict[str, int]:
    """Return how many of each model are ahead by priority and age, and have not gone yet."""
    own = (-formula.key(ticket), ticket.number)
    return {
        model: max(0, bisect_left(lane, own) - procession.passed(model))
        for model, lane in room.lanes().items()
    }


def _eta(times: Times | None) -> Eta | None:
    return None if times is None else Eta(*median_and_p90(times))
