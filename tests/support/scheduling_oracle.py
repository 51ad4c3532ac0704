"""What the serial scheduler ought to do, worked out anew with fractions at every dispatch.

It knows nothing of keys, heaps and rooms: it scores all who may go, exactly,
and names the winner, the terms that changed the pick, and the text of the
score.  Of the swap budget it keeps its own account.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import floor

from llamaswap.config.model import GroupConfig
from llamaswap.scheduling.groups import GroupPlanner
from llamaswap.scheduling.vocabulary import Dispatch, Term, Ticket, band_of
from support.scheduling_box import Box, Life


class Oracle:
    """Watches one box and objects to every pick that the rules do not explain, or that is missing.

    Args:
        box: of the serial scheduler.
        groups: which of its models evict which.
        divisor: seconds per point, as written.
        bonus: points.
        width: jobs at once, by model.
        swap_budget: seconds.
        runs: what a job of each model is expected to take, in seconds.
    """

    def __init__(
        self,
        box: Box,
        groups: Sequence[GroupConfig],
        divisor: str,
        bonus: int,
        *,
        width: Mapping[str, int] | None = None,
        swap_budget: float = 0.0,
        runs: Mapping[str, float] | None = None,
    ) -> None:
        self.reorders = Counter({Term.AGING: 0, Term.SWAP_AFFINITY: 0})
        self.side_by_side = 0  # dispatches beside another job
        self._box = box
        self._make_room = GroupPlanner(groups).make_room
        self._divisor = Fraction(divisor)
        self._bonus = bonus
        self._width = width or {}
        self._full = Fraction(swap_budget)
        self._left = self._full
        self._loads = 0
        self._runs = {model: Fraction(seconds) for model, seconds in (runs or {}).items()}
        box.on_dispatch = self.judge
        box.on_rest = self.look_for_missing

    def judge(self, dispatch: Dispatch) -> None:
        """Compare a dispatch with what ought to be."""
        ticket, verdict = dispatch.ticket, dispatch.verdict
        self._renew_after_loads()
        due = self._winner()
        winner = self._before_swap(due) or due
        cost = self._runs[winner.model] if winner != due else Fraction(0)
        self._left -= cost
        without = {
            Term.AGING: self._winner(aging=False),
            Term.SWAP_AFFINITY: self._winner(affinity=False),
        }
        score = self._score(ticket)

        assert ticket == winner
        if winner != due:
            assert verdict.changed_by == {Term.SWAP_BUDGET}
        else:
            assert verdict.changed_by == {term for term, other in without.items() if other != winner}
        assert verdict.score == _three_decimals(score)
        assert verdict.priority == ticket.priority
        assert verdict.band is band_of(ticket.priority)
        assert Fraction(verdict.waited) == self._waited(ticket)
        assert verdict.metadata == {
            "serial_priority": str(ticket.priority),
            "serial_band": band_of(ticket.priority).value,
            "serial_score": verdict.score,
            "serial_queue_wait_ms": str(floor(self._waited(ticket) * 1000)),
            **({"serial_swap_budget_ms": str(floor(cost * 1000))} if cost else {}),
        }
        self.reorders.update(verdict.changed_by)
        if self._box.jobs:
            self.side_by_side += 1
            assert self._lets_in(ticket), "beside a job that does not let it in"

    def look_for_missing(self) -> None:
        """Object if somebody waits who could go beside the running job."""
        jobs = self._box.jobs.values()
        if jobs and self._may_go():
            assert not self._lets_in(self._winner()), "nobody goes although the next best could"

    def _renew_after_loads(self) -> None:
        if len(self._box.loads) > self._loads:
            self._loads = len(self._box.loads)
            self._left = self._full

    def _lets_in(self, ticket: Ticket) -> bool:
        jobs = self._box.jobs.values()
        return (
            {job.model for job in jobs} == {ticket.model}
            and len(jobs) < self._width.get(ticket.model, 1)
            and all(self._box.life[job.number] is not Life.DISPATCHED for job in jobs)
            and self._resident(ticket.model)
        )

    def _before_swap(self, due: Ticket) -> Ticket | None:
        """Who goes although it is another's turn, because a swap can wait."""
        if self._box.jobs or self._resident(due.model):
            return None
        ended = self._make_room(due.model, self._box.facts.running)
        return self._best(
            ticket
            for ticket in self._may_go()
            if ticket.model in ended
            and self._resident(ticket.model)
            and ticket.model in self._runs
            and self._runs[ticket.model] <= self._left
        )

    def _winner(self, *, aging: bool = True, affinity: bool = True) -> Ticket:
        best = self._best(self._may_go(), aging, affinity)
        assert best is not None
        return best

    def _best(self, tickets: Iterable[Ticket], aging: bool = True, affinity: bool = True) -> Ticket | None:
        best: Ticket | None = None
        for ticket in tickets:
            if best is None or self._score(ticket, aging, affinity) > self._score(best, aging, affinity):
                best = ticket
        return best

    def _may_go(self) -> list[Ticket]:
        """All who wait and are not paused, in arrival order."""
        waiting = sorted(self._box.waiting.values(), key=lambda each: each.number)
        return [ticket for ticket in waiting if band_of(ticket.priority) not in self._box.paused]

    def _score(self, ticket: Ticket, aging: bool = True, affinity: bool = True) -> Fraction:
        score = Fraction(ticket.priority)
        if affinity and self._resident(ticket.model):
            score += self._bonus
        if aging and self._divisor:
            score += self._waited(ticket) / self._divisor
        return score

    def _waited(self, ticket: Ticket) -> Fraction:
        return max(Fraction(0), Fraction(self._box.facts.now) - Fraction(ticket.arrived))

    def _resident(self, model: str) -> bool:
        facts = self._box.facts
        return model in facts.ready and not self._make_room(model, facts.running)


def _three_decimals(score: Fraction) -> str:
    text = format(Decimal(floor(score * 1000 + Fraction(1, 2))).scaleb(-3), "f")
    return text.rstrip("0").rstrip(".")
