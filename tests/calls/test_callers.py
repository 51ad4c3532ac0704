"""What a request's priority comes to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.calls.callers import Policy
from llamaswap.config.model import CallerConfig, PrioritiesConfig

NOBODY = Policy(PrioritiesConfig())
FREE = CallerConfig(name="free")
PRO = CallerConfig(name="pro", offset=1)
MAX = CallerConfig(name="max", offset=2)

INTERACTIVE, NORMAL, BATCH = 100, 0, -100
numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-250, 250)
callers = st.none() | st.builds(
    CallerConfig,
    name=st.just("c"),
    default_priority=st.none() | numbers,
    max_priority=st.none() | numbers,
    offset=st.integers(0, 98),
)


def band(priority: int) -> int:
    """The number of a band, as the bands are defined."""
    return 2 if priority >= 100 else 1 if priority >= 0 else 0


def test_without_settings_a_request_gets_what_it_asks_for() -> None:
    assert NOBODY.effective(7, None, "m") == 7
    assert NOBODY.effective(None, None, "m") == 0
    assert not NOBODY.depends_on_model


@pytest.mark.parametrize(
    ("caller", "batch", "normal", "chat"), [(FREE, -100, 0, 100), (PRO, -99, 1, 101), (MAX, -98, 2, 102)]
)
def test_a_plan_orders_each_band_as_the_worked_example_has_it(
    caller: CallerConfig, batch: int, normal: int, chat: int
) -> None:
    got = [NOBODY.effective(asked, caller, "m") for asked in (BATCH, NORMAL, INTERACTIVE)]

    assert got == [batch, normal, chat]


def test_the_largest_plans_batch_work_stays_behind_everybodys_normal_requests() -> None:
    greedy = CallerConfig(name="greedy", offset=98)

    assert NOBODY.effective(-50, greedy, "m") == -1 < NOBODY.effective(NORMAL, FREE, "m")
    assert NOBODY.effective(99, greedy, "m") == 99 < NOBODY.effective(INTERACTIVE, FREE, "m")
    assert NOBODY.effective(150, greedy, "m") == 248


def test_who_says_nothing_gets_the_callers_default_then_the_models() -> None:
    policy = Policy(PrioritiesConfig(models={"renderer": BATCH}))
    batcher = CallerConfig(name="batcher", default_priority=-50)

    assert policy.depends_on_model
    assert policy.effective(None, batcher, "renderer") == -50
    assert policy.effective(None, PRO, "renderer") == -99
    assert policy.effective(None, None, "renderer") == BATCH
    assert policy.effective(None, None, "chat") == NORMAL
    assert policy.effective(NORMAL, batcher, "renderer") == NORMAL


def test_a_bound_holds_whatever_was_asked_for() -> None:
    bounded = CallerConfig(name="nightly", default_priority=100, max_priority=-1, offset=5)

    assert NOBODY.effective(INTERACTIVE, bounded, "m") == -1
    assert NOBODY.effective(2**63 - 1, bounded, "m") == -1
    assert NOBODY.effective(None, bounded, "m") == -1
    assert NOBODY.effective(BATCH, bounded, "m") == -95


@given(st.none() | numbers, callers, numbers)
def test_nobody_leaves_his_band_or_gets_past_his_bound(
    asked: int | None, caller: CallerConfig | None, of_model: int
) -> None:
    got = Policy(PrioritiesConfig(models={"m": of_model})).effective(asked, caller, "m")

    if caller is None:
        assert got == (of_model if asked is None else asked)
        return
    wanted = asked if asked is not None else caller.default_priority
    wanted = of_model if wanted is None else wanted
    bounded = wanted if caller.max_priority is None else min(wanted, caller.max_priority)
    assert band(got) == band(bounded)
    assert bounded <= got <= bounded + caller.offset
    assert got == bounded + caller.offset or band(got + 1) > band(got)
