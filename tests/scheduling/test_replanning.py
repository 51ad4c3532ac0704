"""What becomes of loads under way when the configuration changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from llamaswap.config.model import GroupConfig
from llamaswap.errors import ModelProtected, UnknownModel
from llamaswap.scheduling.replanning import Replanned, replan
from llamaswap.scheduling.vocabulary import Facts, Handover, Resume, Ticket
from support.scheduling_box import Box, Life
from support.scheduling_setup import fifo_box, serial_box

MakeBox = Callable[..., Box]

every_scheduler = pytest.mark.parametrize("make", [serial_box, fifo_box], ids=["serial", "fifo"])

BESIDE = (GroupConfig(id="g", swap=False, members=("A", "B", "C")),)
"""Nobody evicts anybody."""


def tickets(models: str, first: int = 1, *, overrides: bool = False) -> tuple[Ticket, ...]:
    return tuple(
        Ticket(number=number, model=model, priority=0, arrived=0.0, overrides=overrides)
        for number, model in enumerate(models, first)
    )


def change(
    running: str,
    *,
    loading: str = "",
    served: str = "",
    unclaimed: str = "",
    models: str = "ABCD",
    protected: str = "",
    stopping: str = "",
    overrides: bool = False,
) -> Replanned:
    """The configuration becomes one in which nobody can run beside anybody."""
    return replan(
        Handover(
            loading=tickets(loading, overrides=overrides),
            served=tickets(served, 100),
            unclaimed=frozenset(unclaimed),
        ),
        models,
        Facts(now=0.0, running=frozenset(running), stopping=frozenset(stopping)),
        lambda target, there: there - {target},
        frozenset(protected),
    )


@pytest.mark.parametrize("running", ["AC", "C"])  # its child has begun, or waits for others to end
def test_a_load_that_somebody_waits_for_makes_room_anew(running: str) -> None:
    loads = change(running, loading="AA")

    assert loads.claimed == (Resume("A", frozenset("C")),)
    assert loads.loading == tickets("AA")
    assert not loads.ended


def test_whoever_is_being_served_keeps_his_model() -> None:
    assert change("ABC", loading="A", served="B").claimed == (Resume("A", frozenset("C")),)


def test_two_loads_that_were_granted_side_by_side_both_go_on() -> None:
    assert change("ABC", loading="BA").claimed == (
        Resume("B", frozenset("C")),
        Resume("A", frozenset("C")),
    )


def test_a_load_that_nobody_waits_for_goes_on_where_it_is_alone() -> None:
    assert change("A", unclaimed="A").unclaimed == {"A"}


@pytest.mark.parametrize(
    ("running", "more"),
    [
        ("AC", {}),  # somebody else is there
        ("AC", {"stopping": "C"}),  # or still is: nobody misses what has not begun
        ("A", {"loading": "B"}),
        ("A", {"served": "B"}),
        ("A", {"models": "BCD"}),
    ],
)
def test_it_ends_where_it_would_evict_somebody_or_is_in_the_way(running: str, more: dict[str, Any]) -> None:
    loads = change(running, unclaimed="A", **more)

    assert loads.unclaimed == frozenset()
    assert loads.ended == frozenset("A") & set(more.get("models", "ABCD"))


def test_of_several_that_nobody_waits_for_one_at_most_goes_on() -> None:
    assert change("A", unclaimed="AB").unclaimed == {"A"}
    assert change("", unclaimed="AB").unclaimed == {"A"}
    assert change("AB", unclaimed="AB").ended == {"A", "B"}


def test_it_begins_beside_nobody_who_is_about_to_go() -> None:
    loads = change("AB", loading="A", unclaimed="B", models="BCD")  # A was in the middle of its load

    assert loads.unclaimed == frozenset()
    assert loads.ended == {"B"}


def test_a_load_of_a_model_that_is_gone_is_refused_and_what_is_left_of_it_is_waited_for() -> None:
    loads = change("A", loading="AB", models="BCD")

    ((gone, why),) = loads.refused
    assert (gone, type(why)) == (tickets("A")[0], UnknownModel)
    assert loads.claimed == (Resume("B", frozenset("A")),)
    assert loads.ended == frozenset()  # it stops by itself
    assert change("", loading="AB", models="BCD").claimed == (Resume("B", frozenset()),)  # nothing ran


def test_a_load_that_would_evict_a_protected_model_now_is_refused_and_ended() -> None:
    loads = change("AC", loading="A", protected="C")

    ((_, why),) = loads.refused
    assert isinstance(why, ModelProtected)
    assert loads.ended == {"A"}
    assert loads.claimed == ()
    assert loads.loading == ()


@pytest.mark.parametrize("more", [{"overrides": True}, {"stopping": "C"}, {"served": "C"}, {"loading": "AC"}])
def test_unless_it_may_or_that_model_is_going_or_has_a_job_beside_it(more: dict[str, Any]) -> None:
    loads = change("AC", **{"loading": "A", "protected": "C", **more})

    assert loads.refused == ()
    assert "A" in {load.model for load in loads.claimed}


def test_a_protected_model_that_nobody_waits_for_is_loaded_to_the_end() -> None:
    assert change("AC", unclaimed="A", protected="A").unclaimed == {"A"}
    assert change("C", unclaimed="A", protected="A").ended == {"A"}  # it has not begun
    assert change("AC", unclaimed="A", protected="A", stopping="AC").ended == {"A"}  # nor has its next child
    assert change("A", unclaimed="A", protected="A", stopping="A").unclaimed == {"A"}


# In a box.


@every_scheduler
def test_a_load_beside_others_stops_them_once_they_may_no_longer_be_there(make: MakeBox) -> None:
    box = make("ABC", groups=BESIDE)
    box.fleet.load_time = 30.0
    box.arrive("A", job=1.0)
    box.advance(40.0)
    box.arrive("B")
    box.advance(10.0)

    box.reload(make("ABC"))
    assert box.fleet.running() == {"B"}
    box.settle()

    assert box.resumed == [("B", frozenset("A"))]
    assert box.loads == [("A", frozenset()), ("B", frozenset())]
    assert box.served_at[2] == pytest.approx(70.0)


@every_scheduler
def test_a_load_that_waits_for_a_slow_stop_begins_alone(make: MakeBox) -> None:
    a_against_b = (
        GroupConfig(id="rivals", exclusive=False, members=("A", "B")),
        GroupConfig(id="other", exclusive=False, members=("C",)),
    )
    box = make("ABC", groups=a_against_b)
    for model in "AC":
        box.arrive(model)
    box.settle()
    box.fleet.stop_time = 5.0
    box.arrive("B")
    assert box.fleet.stopping() == {"A"}

    box.reload(make("ABC"))
    box.settle()

    assert box.resumed == [("B", frozenset("AC"))]
    assert box.where(box.tickets[2]) is Life.ENDED
    assert box.fleet.running() == {"B"}


@every_scheduler
def test_a_load_that_everybody_has_left_ends_where_it_would_evict_somebody(make: MakeBox) -> None:
    box = make("ABC", groups=BESIDE)
    box.arrive("A")
    box.settle()
    gone = box.arrive("B")
    box.cancel(gone)
    assert box.fleet.loads.keys() == {"B"}

    box.reload(make("ABC"))

    assert box.fleet.running() == {"A"}
    assert box.stops == [frozenset("B")]


@every_scheduler
def test_a_load_that_may_not_evict_what_is_protected_now_is_refused(make: MakeBox) -> None:
    box = make("ABC", groups=BESIDE)
    box.arrive("A")
    box.settle()
    late = box.arrive("B")

    box.reload(make("ABC", protected="A"))

    assert isinstance(box.refused[late.number], ModelProtected)
    assert box.fleet.running() == {"A"}


def test_loads_side_by_side_end_before_serial_begins_another() -> None:
    box = fifo_box("ABC", groups=BESIDE)
    for model in "AB":
        box.arrive(model, job=3.0)

    box.reload(serial_box("ABC"))
    box.arrive("C")
    box.settle()

    assert box.resumed == [("A", frozenset()), ("B", frozenset())]
    assert box.served == [1, 2, 3]


def test_a_load_that_nobody_waits_for_is_not_resumed_only_to_be_ended_by_the_next_pick() -> None:
    box = fifo_box("ABC")
    box.arrive("B")
    box.settle()
    box.fleet.stop_time = 5.0
    box.cancel(box.arrive("A"))  # it waits for B to stop
    box.arrive("C")

    box.reload(serial_box("ABC", groups=BESIDE))

    assert box.resumed == []
    assert box.fleet.loads.keys() == {"C"}
    box.settle()
    assert box.served == [1, 3]
