"""Each pick of the serial scheduler against the formula, worked out anew with fractions.

The oracle knows nothing of keys and heaps: at every dispatch it scores all who
wait, exactly, and names the winner, the terms that changed the pick, and the
text of the score.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.config.model import GroupConfig
from llamaswap.scheduling.groups import GroupPlanner
from llamaswap.scheduling.vocabulary import Dispatch, Term, Ticket, band_of
from support.scheduling_box import Box
from support.scheduling_setup import serial_box
from support.scheduling_walks import (
    MODELS,
    TICK,
    Arrive,
    Break,
    Leave,
    Pass,
    Step,
    Unload,
    groupings,
    walk,
    walks,
)

DIVISORS = ("0", "1e-6", "0.5", "60", "1e9")  # as written in a configuration


class Oracle:
    """Watches one box and objects to every pick that the formula does not explain."""

    def __init__(self, box: Box, groups: Sequence[GroupConfig], divisor: str, bonus: int) -> None:
        self.reorders = {Term.AGING: 0, Term.SWAP_AFFINITY: 0}
        self._box = box
        self._make_room = GroupPlanner(groups).make_room
        self._divisor = Fraction(divisor)
        self._bonus = bonus
        box.on_dispatch = self.judge

    def judge(self, dispatch: Dispatch) -> None:
        ticket, verdict = dispatch.ticket, dispatch.verdict
        winner = self._winner()
        without = {
            Term.AGING: self._winner(aging=False),
            Term.SWAP_AFFINITY: self._winner(affinity=False),
        }
        score = self._score(ticket)

        assert ticket == winner
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
        }
        for term in verdict.changed_by:
            self.reorders[term] += 1

    def _winner(self, *, aging: bool = True, affinity: bool = True) -> Ticket:
        best: Ticket | None = None
        for ticket in sorted(self._box.waiting.values(), key=lambda each: each.number):
            if best is None or self._score(ticket, aging, affinity) > self._score(best, aging, affinity):
                best = ticket
        assert best is not None
        return best

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


@given(
    steps=walks,
    groups=groupings(),
    divisor=st.sampled_from(DIVISORS),
    bonus=st.one_of(st.just(10), st.integers(0, 99)),
    load_time=st.sampled_from((0.0, TICK, 1.0, 30.0)),
    stop_time=st.sampled_from((0.0, 0.0, 5.0)),
)
@settings(max_examples=300, deadline=None)
def test_case_045_every_pick_is_the_one_that_the_formula_names(
    steps: list[Step],
    groups: tuple[GroupConfig, ...],
    divisor: str,
    bonus: int,
    load_time: float,
    stop_time: float,
) -> None:
    box = serial_box(MODELS, groups=groups, divisor=float(divisor), bonus=bonus)
    Oracle(box, groups, divisor, bonus)

    walk(box, steps, load_time=load_time, stop_time=stop_time)
    box.settle()

    assert not box.waiting


def _busy_day(dice: random.Random) -> list[Step]:
    """Return the steps of a crowd that comes faster than it is served."""
    steps: list[Step] = []
    for _ in range(250):
        priority = dice.choice((0, 0, 0, 1, -1, 10, -100, -98, 100, 2**63 - 1, -(2**63)))
        steps.append(Arrive(dice.choice(MODELS), priority, dice.choice((1.0, 30.0, 60.0))))
        steps.append(Pass(dice.choice((0.0, 0.0, 5.0, 30.0))))
        if dice.random() < 0.1:
            steps.append(Leave(dice.randrange(300)))
        if dice.random() < 0.05:
            steps.append(Unload((dice.choice(MODELS),)))
        if dice.random() < 0.05:
            steps.append(Break(dice.choice(MODELS), dice.random() < 0.3))
    return steps


@pytest.mark.parametrize("seed", range(3))
def test_case_045_a_crowded_day_is_explained_to_the_last_pick(seed: int) -> None:
    groups = (
        GroupConfig(id="swap", members=("A", "B", "C")),
        GroupConfig(id="keep", persistent=True, exclusive=False, members=("D",)),
    )
    box = serial_box(MODELS, groups=groups)
    oracle = Oracle(box, groups, "60", 10)

    walk(box, _busy_day(random.Random(seed)), load_time=3.0, stop_time=TICK)
    box.settle()

    assert len(box.dispatched) > 100
    assert all(oracle.reorders.values()), "the day was too quiet to say anything"
