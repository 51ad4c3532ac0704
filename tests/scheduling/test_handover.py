"""A reload gives the queue from one scheduler to the next; nobody loses his place."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.config.model import GroupConfig
from llamaswap.errors import UnknownModel
from llamaswap.scheduling.vocabulary import Band
from support.scheduling_box import Box, Life
from support.scheduling_setup import fifo_box, serial_box
from support.scheduling_walks import MODELS, TICK, Step, groupings, meddled_walks, walk

MAKERS = (serial_box, fifo_box)
TERMINAL = {Life.ENDED, Life.REFUSED, Life.CANCELLED}
delays = st.sampled_from((0.0, TICK, 1.0, 30.0))


@given(
    before=st.sampled_from(MAKERS),
    after=st.sampled_from(MAKERS),
    steps=meddled_walks,
    more=meddled_walks,
    groups=groupings(),
    dropped=st.sets(st.sampled_from(MODELS), max_size=2),
    load_time=delays,
    stop_time=delays,
)
@settings(max_examples=200, deadline=None)
def test_each_ticket_ends_once_whatever_is_reloaded(
    before: object,
    after: object,
    steps: list[Step],
    more: list[Step],
    groups: tuple[GroupConfig, ...],
    dropped: set[str],
    load_time: float,
    stop_time: float,
) -> None:
    kept = [
        step for step in more if not dropped & set(getattr(step, "model", "") or getattr(step, "models", ()))
    ]
    first, second = MAKERS[before is fifo_box], MAKERS[after is fifo_box]
    box = first(MODELS, groups=groups)

    walk(box, steps, load_time=load_time, stop_time=stop_time)
    _drop(box, dropped)
    box.reload(second([model for model in MODELS if model not in dropped], groups=_without(groups, dropped)))
    walk(box, kept, load_time=load_time, stop_time=stop_time)
    box.resume(*Band)
    box.settle()

    assert set(box.life.values()) <= TERMINAL
    assert len(set(box.served)) == len(box.served)
    assert box.scheduler.view(box.clock.seconds()).jobs == ()


def test_waiting_tickets_keep_their_arrival_and_their_place() -> None:
    box = serial_box("ABC")
    box.arrive("A", job=10.0)
    for model, priority in (("B", -100), ("C", 0), ("B", 100), ("C", 0)):
        box.advance(1.0)
        box.arrive(model, priority)

    box.reload(serial_box("ABC", bonus=0))
    box.settle()

    assert box.served == [1, 4, 3, 5, 2]
    assert box.verdicts[2].metadata["serial_queue_wait_ms"] == str(
        round((box.dispatched_at[2] - box.tickets[1].arrived) * 1000)
    )


def test_scheduler_settings_apply_to_who_waits_already() -> None:
    box = serial_box("AB", bonus=0)
    box.arrive("A", job=10.0)
    box.arrive("B")
    box.arrive("A")

    box.reload(serial_box("AB", bonus=99))
    box.settle()

    assert box.served == [1, 3, 2]


@pytest.mark.parametrize("make", MAKERS)
def test_a_waiting_ticket_whose_model_is_gone_is_told_so(make: object) -> None:
    box = MAKERS[make is fifo_box]("AB")
    box.arrive("A", job=10.0)
    box.advance(3.0)
    gone = box.arrive("B")

    box.reload(MAKERS[make is fifo_box]("A"))

    assert isinstance(box.refused[gone.number], UnknownModel)
    assert box.where(box.tickets[0]) is Life.SERVING


def test_jobs_that_ran_side_by_side_end_before_serial_picks() -> None:
    together = (GroupConfig(id="g", swap=False, members=("A", "B", "C")),)
    box = fifo_box("ABC", groups=together)
    box.fleet.load_time = 0.0
    box.arrive("A", job=5.0)
    box.arrive("B", job=8.0)
    box.advance(1.0)

    box.reload(serial_box("ABC", groups=together))
    box.arrive("C")
    box.advance(6.0)
    assert box.served == [1, 2]

    box.settle()
    assert box.dispatched_at[3] == pytest.approx(8.0)


def test_a_load_under_way_goes_on_and_serves_its_ticket() -> None:
    box = serial_box("AB")
    box.fleet.load_time = 30.0
    box.arrive("A")
    box.advance(10.0)

    box.reload(serial_box("AB", bonus=0))
    box.settle()

    assert box.loads == [("A", frozenset())]
    assert box.served_at[1] == pytest.approx(30.0)


def test_a_client_that_leaves_one_of_two_loads_ends_it_and_the_other_goes_on() -> None:
    together = (GroupConfig(id="g", swap=False, members=("A", "B")),)
    box = fifo_box("AB", groups=together)
    gone = box.arrive("A")
    box.arrive("B")

    box.reload(serial_box("AB", groups=together))
    box.cancel(gone)
    assert box.stops == [frozenset("A")]

    box.settle()
    assert box.served == [2]


def test_a_client_that_leaves_a_load_that_another_waits_for_ends_nothing() -> None:
    box = fifo_box("AB")
    gone, other = box.arrive("A"), box.arrive("A")

    box.reload(serial_box("AB"))
    box.cancel(gone)
    box.arrive("B", 100)
    assert box.stops == []

    box.settle()
    assert box.served == [other.number, 3]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("after", MAKERS)
def test_who_got_another_priority_can_still_leave(make: object, after: object) -> None:
    box = MAKERS[make is fifo_box]("AB")
    box.arrive("A", job=10.0)
    moved = box.arrive("B")
    box.reprioritise(moved, 100)

    box.reload(MAKERS[after is fifo_box]("AB"))
    box.cancel(moved)
    box.settle()

    assert box.dispatched == [1]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("after", MAKERS)
def test_what_is_paused_stays_paused(make: object, after: object) -> None:
    box = MAKERS[make is fifo_box]("AB")
    box.arrive("A", job=10.0)
    box.arrive("B", -100)
    box.pause(Band.BATCH)

    box.reload(MAKERS[after is fifo_box]("AB"))
    box.settle()
    assert box.dispatched == [1]

    box.resume(Band.BATCH)
    box.settle()
    assert box.dispatched == [1, 2]


def _drop(box: Box, models: set[str]) -> None:
    """End what the operator took out of the configuration, as the daemon does: loads at once."""
    box.fleet.stop(models & set(box.fleet.loads))


def _without(groups: tuple[GroupConfig, ...], models: set[str]) -> tuple[GroupConfig, ...]:
    return tuple(
        GroupConfig(
            id=group.id,
            swap=group.swap,
            exclusive=group.exclusive,
            persistent=group.persistent,
            members=tuple(member for member in group.members if member not in models),
        )
        for group in groups
    )
