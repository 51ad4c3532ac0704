"""The time of the box by state."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from llamaswap.leases import BoxState
from llamaswap.telemetry.busy import STATES, BoxTime

CHANGES = st.lists(st.tuples(st.sampled_from(STATES), st.floats(0, 1e6)), max_size=20)


def test_the_box_begins_idle_and_each_state_gets_its_time() -> None:
    box = BoxTime(100.0)

    box.turned("load", 110.0)
    box.turned("run", 140.0)
    box.turned("idle", 200.0)

    assert box.seconds(205.0) == {"idle": 15.0, "load": 30.0, "run": 60.0}


def test_a_state_that_lasts_counts_up_to_the_moment_of_asking() -> None:
    box = BoxTime(0.0)
    box.turned("run", 1.0)

    assert box.seconds(3.0)["run"] == 2.0
    assert box.seconds(3.0)["run"] == 2.0
    assert box.seconds(10.0)["run"] == 9.0


def test_what_was_answered_is_not_changed_by_what_happens_later() -> None:
    box = BoxTime(0.0)
    first = box.seconds(1.0)

    box.seconds(2.0)

    assert first["idle"] == 1.0


@given(CHANGES)
def test_the_states_share_all_the_time_there_was(changes: list[tuple[BoxState, float]]) -> None:
    now, box = 0.0, BoxTime(0.0)
    for state, lasted in changes:
        now += lasted
        box.turned(state, now)

    assert math.isclose(sum(box.seconds(now + 1.0).values()), now + 1.0)


@given(st.lists(st.tuples(st.sampled_from(STATES), st.floats(-1e6, 1e6)), max_size=20))
def test_no_sum_ever_falls_whatever_the_clock_does(moments: list[tuple[BoxState, float]]) -> None:
    box = BoxTime(0.0)
    before = box.seconds(0.0)
    for state, now in moments:
        box.turned(state, now)
        after = box.seconds(now)
        assert all(after[name] >= before[name] for name in STATES)
        before = after
