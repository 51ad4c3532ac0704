"""Each pick of the serial scheduler against its rules: widths, a swap budget, pauses, new priorities."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.config.model import GroupConfig
from llamaswap.scheduling.vocabulary import Band, Term
from support.scheduling_oracle import Oracle
from support.scheduling_setup import serial_box
from support.scheduling_walks import (
    MODELS,
    TICK,
    Arrive,
    Leave,
    Pass,
    Pause,
    Reprioritise,
    Resume,
    Step,
    groupings,
    meddled_walks,
    walk,
)

widths = st.dictionaries(st.sampled_from(MODELS), st.integers(1, 4), max_size=4)
expected = st.dictionaries(st.sampled_from(MODELS), st.sampled_from((TICK, 1.0, 5.0, 30.0)), max_size=4)


@given(
    steps=meddled_walks,
    groups=groupings(),
    divisor=st.sampled_from(("0", "0.5", "60")),
    width=widths,
    swap_budget=st.sampled_from((0.0, 1.0, 30.0, 90.0)),
    runs=expected,
    load_time=st.sampled_from((0.0, TICK, 1.0, 30.0)),
    stop_time=st.sampled_from((0.0, 0.0, 5.0)),
)
@settings(max_examples=300, deadline=None)
def test_every_pick_is_the_one_that_the_rules_name(
    steps: list[Step],
    groups: tuple[GroupConfig, ...],
    divisor: str,
    width: dict[str, int],
    swap_budget: float,
    runs: dict[str, float],
    load_time: float,
    stop_time: float,
) -> None:
    box = serial_box(
        MODELS, groups=groups, divisor=float(divisor), width=width, swap_budget=swap_budget, runs=runs
    )
    Oracle(box, groups, divisor, 10, width=width, swap_budget=swap_budget, runs=runs)

    walk(box, steps, load_time=load_time, stop_time=stop_time)
    box.resume(*Band)
    box.settle()

    assert not box.waiting
    assert not box.jobs


def _busy_day(dice: random.Random) -> list[Step]:
    """Return the steps of a crowd that comes faster than it is served, and of somebody who meddles."""
    steps: list[Step] = []
    for number in range(300):
        lately = max(0, number - dice.randrange(40))
        priority = dice.choice((0, 0, 0, 1, -1, 10, -100, -98, 100))
        steps.append(Arrive(dice.choice(MODELS), priority, dice.choice((1.0, 5.0, 30.0))))
        steps.append(Pass(dice.choice((0.0, 0.0, 5.0, 30.0))))
        if dice.random() < 0.3:
            steps.append(Leave(lately))
        if dice.random() < 0.2:
            steps.append(Reprioritise(lately, dice.choice((-100, 0, 100))))
        if dice.random() < 0.1:
            bands = tuple(dice.sample(tuple(Band), 2))
            steps += [Pause(bands), Pass(30.0), Resume(bands)]
    return steps


@pytest.mark.parametrize("seed", range(3))
def test_a_crowded_day_is_explained_to_the_last_pick(seed: int) -> None:
    groups = (
        GroupConfig(id="swap", members=("A", "B", "C")),
        GroupConfig(id="keep", persistent=True, exclusive=False, members=("D",)),
    )
    width, runs = {"A": 3, "D": 2}, {"A": 5.0, "B": 15.0}
    box = serial_box(MODELS, groups=groups, width=width, swap_budget=30.0, runs=runs)
    oracle = Oracle(box, groups, "60", 10, width=width, swap_budget=30.0, runs=runs)

    walk(box, _busy_day(random.Random(seed)), load_time=3.0, stop_time=TICK)
    box.settle()

    assert len(box.dispatched) > 200
    assert all(oracle.reorders[term] for term in Term), "the day was too quiet to say anything"
    assert oracle.side_by_side
