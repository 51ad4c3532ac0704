"""The closed form of who may pass, held against who is picked."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from llamaswap.config.model import SerialSettings
from llamaswap.scheduling.overtaking import Bound, bound, bounds
from llamaswap.scheduling.score import Formula, microseconds
from llamaswap.scheduling.vocabulary import Band, Ticket
from support.scheduling_queues import PRIORITIES, room_of

DEFAULTS = Formula(60_000_000, 10)
BANDS = st.sampled_from([Band.NORMAL, Band.INTERACTIVE])
FORMULAS = st.builds(
    lambda divisor, bonus: Formula.of(SerialSettings(aging_divisor=divisor, swap_affinity_bonus=bonus)),
    st.sampled_from([0.5, 1.0, 60.0, 1e4]),
    st.sampled_from([0, 1, 10, 99]),
)
WAITING = st.builds(
    lambda priority, arrived: Ticket(number=1, model="A", priority=priority, arrived=arrived / 64),
    st.one_of(st.sampled_from([-100, 0, 100, 108]), st.integers(-150, 250)),
    st.integers(0, 10**6),
)


def waits(priority: int, arrived: float = 0.0) -> Ticket:
    return Ticket(number=1, model="A", priority=priority, arrived=arrived)


def passes(ticket: Ticket, formula: Formula, priority: int, arrived: float, resident: str) -> bool:
    """Whether somebody who comes later is picked before the ticket."""
    later = Ticket(number=2, model="B", priority=priority, arrived=arrived)
    return room_of([ticket, later], formula).best(frozenset(resident)) == later


@settings(deadline=None)
@given(WAITING, FORMULAS, BANDS, st.integers(0, 98))
def test_the_last_who_passes_comes_just_before_the_moment_and_the_next_one_does_not(
    ticket: Ticket, formula: Formula, band: Band, offset: int
) -> None:
    found = bound(ticket, formula, ticket.arrived, band, offset)
    assert found.after is not None

    if found.ever:
        assert passes(ticket, formula, found.priority, found.after - 2e-6, resident="B")
        assert not passes(ticket, formula, found.priority, found.after, resident="B")
    else:
        assert not passes(ticket, formula, found.priority, ticket.arrived, resident="B")


@settings(deadline=None)
@given(
    WAITING,
    FORMULAS,
    BANDS,
    PRIORITIES,
    st.floats(0, 1e7),
    st.sampled_from(["", "A", "B", "AB"]),
)
def test_after_the_moment_nobody_of_the_priority_or_less_passes_whatever_is_resident(
    ticket: Ticket, formula: Formula, band: Band, priority: int, later: float, resident: str
) -> None:
    found = bound(ticket, formula, ticket.arrived, band, 0)
    assume(priority <= found.priority)
    assert found.after is not None

    arrived = max(ticket.arrived, found.after) + later

    assert not passes(ticket, formula, priority, arrived, resident)


@settings(deadline=None)
@given(WAITING, st.sampled_from([0, 1, 10, 99]), BANDS, st.integers(0, 98))
def test_without_aging_they_always_may_or_never_can(
    ticket: Ticket, bonus: int, band: Band, offset: int
) -> None:
    formula = Formula(0, bonus)

    found = bound(ticket, formula, 0.0, band, offset)

    assert found.after is None
    assert found.ever == passes(ticket, formula, found.priority, 1e9, resident="B")


def test_at_the_defaults_a_batch_ticket_is_safe_from_normal_ones_after_6600_seconds() -> None:
    normal, interactive = bounds(waits(-100, arrived=1000.0), DEFAULTS, 1500.0, 0)

    assert normal == Bound(band=Band.NORMAL, priority=0, after=7600.0, ever=True)
    assert interactive == Bound(band=Band.INTERACTIVE, priority=100, after=13600.0, ever=True)


def test_the_largest_offset_of_any_caller_counts() -> None:
    normal, interactive = bounds(waits(0), DEFAULTS, 0.0, 5)

    assert (normal.priority, normal.after) == (5, 900.0)
    assert (interactive.priority, interactive.after) == (105, 6900.0)


def test_a_moment_that_has_passed_is_told_and_nobody_can_any_more() -> None:
    normal = bound(waits(0), DEFAULTS, 600.0, Band.NORMAL, 0)

    assert normal == Bound(band=Band.NORMAL, priority=0, after=600.0, ever=False)


def test_no_normal_one_ever_passes_an_interactive_one() -> None:
    assert not bound(waits(100), DEFAULTS, 0.0, Band.NORMAL, 0).ever


@pytest.mark.parametrize(("priority", "ever"), [(-(2**63), True), (2**63 - 1, False)])
def test_a_moment_further_off_than_a_float_can_say_is_none(priority: int, ever: bool) -> None:
    formula = Formula(microseconds(1e298), 10)

    assert bound(waits(priority), formula, 0.0, Band.NORMAL, 0) == Bound(
        band=Band.NORMAL, priority=0, after=None, ever=ever
    )
