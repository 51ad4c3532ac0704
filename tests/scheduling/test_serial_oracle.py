"""Each pick of the serial scheduler against the formula, worked out anew with fractions.

The oracle knows nothing of keys and heaps (`support.scheduling_oracle`).
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.config.model import GroupConfig
from support.scheduling_oracle import Oracle
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
