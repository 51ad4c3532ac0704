"""Models that nobody else's request may evict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.config.model import GroupConfig, ModelConfig
from llamaswap.errors import ModelProtected
from llamaswap.scheduling.guarding import protected_models, turned_away
from llamaswap.scheduling.vocabulary import Band, Ticket
from support.scheduling_box import Box, Life
from support.scheduling_setup import fifo_box, models_named, serial_box
from support.scheduling_walks import MODELS, TICK, Step, groupings, ruthless_walks, walk

MakeBox = Callable[..., Box]

every_scheduler = pytest.mark.parametrize("make", [serial_box, fifo_box], ids=["serial", "fifo"])

BESIDE = (GroupConfig(id="g", swap=False, members=("A", "B", "C")),)
"""Nobody evicts anybody."""

A_AGAINST_C = (
    GroupConfig(id="rivals", exclusive=False, members=("A", "C")),
    GroupConfig(id="other", exclusive=False, members=("B",)),
)
"""A and C evict each other, B runs beside both."""


def ask(model: str, running: str, stopping: str = "", **more: Any) -> ModelProtected | None:
    """The question for a box on which A and B are protected and nobody can run beside anybody."""
    ticket = Ticket(number=1, model=model, priority=0, arrived=0.0, **more)
    alone = lambda target, running: running - {target}  # noqa: E731
    return turned_away(ticket, frozenset(running), frozenset(stopping), frozenset("AB"), alone)


def loaded(box: Box, model: str) -> None:
    """Make a model resident by a job of its own."""
    box.arrive(model)
    box.settle()
    assert model in box.fleet.ready


def refusal(box: Box, ticket: Ticket) -> str:
    """What a refused ticket was told."""
    assert box.where(ticket) is Life.REFUSED
    assert isinstance(box.refused[ticket.number], ModelProtected)
    return box.refused[ticket.number].message


def test_only_what_is_configured_is_protected() -> None:
    models = {"A": ModelConfig(id="A", protected=True), "B": ModelConfig(id="B")}

    assert protected_models(models) == {"A"}
    assert protected_models(models_named("AB")) == frozenset()


def test_whoever_needs_the_place_of_a_protected_model_is_told_who_has_it() -> None:
    refused = ask("C", "ABD")

    assert refused is not None
    assert refused.message.startswith("models A, B are loaded and protected, and C cannot run beside them;")
    assert (refused.status, refused.code, refused.retry_after) == (409, "model_protected", None)


@pytest.mark.parametrize(
    ("model", "running", "stopping"), [("C", "", ""), ("C", "D", ""), ("A", "A", ""), ("C", "AB", "AB")]
)
def test_nobody_else_is_held_off(model: str, running: str, stopping: str) -> None:
    assert ask(model, running, stopping) is None


def test_one_protected_model_does_not_make_way_for_another() -> None:
    assert ask("A", "B") is not None


def test_a_ticket_that_overrides_is_not_held_off() -> None:
    assert ask("C", "AB", overrides=True) is None


@every_scheduler
def test_a_request_that_would_evict_a_protected_model_is_refused_when_it_comes(make: MakeBox) -> None:
    box = make("AB", protected="A")
    loaded(box, "A")

    assert "model A is loaded and protected" in refusal(box, box.arrive("B", 1000))
    box.arrive("A", job=60.0)
    assert "model A is loaded and protected" in refusal(box, box.arrive("B", 1000))

    assert box.loads == [("A", frozenset())]
    assert not box.stops and not box.waiting


@every_scheduler
def test_a_request_that_overrides_waits_for_its_turn_and_evicts_it(make: MakeBox) -> None:
    box = make("AB", protected="A")
    box.fleet.stop_time = 5.0
    loaded(box, "A")
    job = box.arrive("A", job=60.0)

    ruthless = box.arrive("B", overrides=True)
    box.advance(59.0)
    assert (box.where(job), box.where(ruthless)) == (Life.SERVING, Life.WAITING)
    box.advance(2.0)
    second = box.arrive("B", job=1.0)  # A is on its way out: it holds nobody off any more
    box.settle()

    assert [box.where(ticket) for ticket in (ruthless, second)] == [Life.ENDED, Life.ENDED]
    assert box.loads[1] == ("B", frozenset("A"))


@every_scheduler
def test_an_operator_unloads_it_and_its_place_is_free(make: MakeBox) -> None:
    box = make("AB", protected="A")
    loaded(box, "A")

    box.unload("A")
    other = box.arrive("B")
    box.settle()

    assert box.where(other) is Life.ENDED


@every_scheduler
def test_a_model_that_can_run_beside_it_is_not_concerned(make: MakeBox) -> None:
    box = make("ABC", groups=A_AGAINST_C, protected="A")
    loaded(box, "A")
    loaded(box, "B")

    assert "model A" in refusal(box, box.arrive("C"))
    assert box.fleet.ready == {"A", "B"}


@every_scheduler
def test_whoever_waited_before_it_came_is_refused_once_it_is_loaded(make: MakeBox) -> None:
    box = make("ABC", protected="A")
    loaded(box, "C")
    box.arrive("C", job=10.0)
    interactive = box.arrive("A", 100, job=60.0)
    waiting = [box.arrive("B"), box.arrive("C", -1), box.arrive("B", overrides=True)]
    if make is fifo_box:
        assert box.where(waiting[1]) is Life.SERVING  # a ready model serves past the queue

    box.advance(5.0)
    assert box.where(waiting[0]) is Life.WAITING
    box.advance(9.0)

    assert box.where(interactive) is Life.SERVING
    assert refusal(box, waiting[0])
    assert box.where(waiting[2]) is Life.WAITING
    box.settle()
    assert box.where(waiting[2]) is Life.ENDED


@every_scheduler
def test_whoever_arrives_while_it_is_being_loaded_is_refused(make: MakeBox) -> None:
    box = make("ABC", protected="A")
    box.fleet.stop_time = 5.0
    loaded(box, "C")
    box.arrive("A")  # C is stopping: no child of A runs yet
    assert "A" not in box.fleet.running()

    assert refusal(box, box.arrive("B"))


@every_scheduler
def test_a_ticket_of_a_paused_band_is_refused_when_its_band_goes_on(make: MakeBox) -> None:
    box = make("AB", protected="A")
    loaded(box, "A")
    box.pause(Band.BATCH)

    batch = box.arrive("B", -100)
    assert box.where(batch) is Life.WAITING
    box.resume(Band.BATCH)

    assert refusal(box, batch)


@every_scheduler
def test_a_band_that_goes_on_while_the_protected_model_works_learns_it_at_once(make: MakeBox) -> None:
    box = make("AB", protected="A")
    loaded(box, "A")
    box.pause(Band.BATCH)
    job, batch, moved = box.arrive("A", job=960.0), box.arrive("B", -100), box.arrive("B", -100)

    box.reprioritise(moved, -98)
    assert box.where(moved) is Life.WAITING
    box.reprioritise(moved, 0)
    assert refusal(box, moved)
    box.resume(Band.BATCH)

    assert refusal(box, batch)
    assert box.where(job) is Life.SERVING


@every_scheduler
def test_a_reload_that_protects_a_model_while_it_works_is_told_at_once(make: MakeBox) -> None:
    box = make("AB")
    loaded(box, "A")
    job, waiting = box.arrive("A", job=960.0), box.arrive("B")

    box.reload(make("AB", protected="A"))

    assert refusal(box, waiting)
    assert box.where(job) is Life.SERVING


def test_a_reload_that_protects_a_model_while_another_one_loads_is_told_at_once() -> None:
    box = serial_box("ABC", groups=A_AGAINST_C)
    loaded(box, "A")
    busy = box.arrive("A", job=0.5)
    loading, waiting = box.arrive("B"), box.arrive("C", -100)
    box.finish(busy)

    box.reload(serial_box("ABC", groups=A_AGAINST_C, protected="A"))

    assert box.where(loading) is Life.DISPATCHED
    assert refusal(box, waiting)


@every_scheduler
def test_a_reload_that_protects_a_model_counts_for_those_who_wait(make: MakeBox) -> None:
    box = make("AB")
    loaded(box, "A")
    box.arrive("A", job=60.0)
    waiting = box.arrive("B")

    box.reload(make("AB", protected="A"))
    box.settle()

    assert refusal(box, waiting)
    assert box.fleet.ready == {"A"}


@every_scheduler
def test_a_refused_request_gives_back_its_place_below_the_limit(make: MakeBox) -> None:
    box = make("AB", protected="A", limits={"B": 1})
    loaded(box, "A")

    for _ in range(3):
        assert refusal(box, box.arrive("B"))
    box.unload("A")
    last = box.arrive("B")
    box.settle()

    assert box.where(last) is Life.ENDED


def test_a_crowd_that_is_refused_at_a_pick_is_refused_at_once() -> None:
    box = serial_box("AB", protected="A", divisor=0.0, swap_budget=100.0, runs={"A": 1.0, "B": 1.0})
    box.pause(Band.NORMAL)
    crowd = [box.arrive("B") for _ in range(2000)]
    box.arrive("A", 100)
    box.settle()

    box.resume(Band.NORMAL)

    assert all(refusal(box, ticket) for ticket in crowd)


def test_a_load_that_nobody_claims_any_more_is_ended_by_nobody_else() -> None:
    box = serial_box("ABC", groups=A_AGAINST_C, protected="A")
    loaded(box, "B")
    box.cancel(box.arrive("A"))

    beside = box.arrive("B", job=1.0)
    assert box.where(beside) is Life.SERVING
    assert refusal(box, box.arrive("C"))
    latecomer = box.arrive("A")
    box.settle()

    assert box.where(latecomer) is Life.ENDED
    assert box.loads == [("B", frozenset()), ("A", frozenset())]
    assert not box.stops


def test_such_a_load_goes_on_beside_another_one_that_nobody_claims_either() -> None:
    box = serial_box("ABC", groups=BESIDE, protected="A")
    box.cancel(box.arrive("A"))
    box.cancel(box.arrive("B"))

    latecomer = box.arrive("A")

    assert box.stops == [frozenset("B")]
    box.settle()
    assert box.where(latecomer) is Life.ENDED
    assert box.fleet.ready == {"A"}


def test_such_a_load_is_ended_by_who_overrides_and_nobody_waits_for_it_then() -> None:
    box = serial_box("ABC", groups=A_AGAINST_C, protected="A")
    box.cancel(box.arrive("A"))
    ruthless = box.arrive("C", overrides=True)
    box.settle()
    again = box.arrive("A", overrides=True)
    box.settle()

    assert [box.where(ticket) for ticket in (ruthless, again)] == [Life.ENDED, Life.ENDED]
    assert box.loads == [("A", frozenset()), ("C", frozenset("A")), ("A", frozenset("C"))]


# Drawn rather than parametrized: pytest-twisted wraps a hypothesis test once per parameter and trips over it.
@given(
    make=st.sampled_from((serial_box, fifo_box)),
    steps=ruthless_walks,
    groups=groupings(),
    protected=st.frozensets(st.sampled_from(MODELS), min_size=1),
    load_time=st.sampled_from((0.0, TICK, 1.0, 30.0)),
    stop_time=st.sampled_from((0.0, TICK, 1.0, 30.0)),
)
@settings(max_examples=200, deadline=None)
def test_whatever_happens_a_protected_model_ends_by_order_only_and_everybody_is_answered(
    make: MakeBox,
    steps: list[Step],
    groups: tuple[GroupConfig, ...],
    protected: frozenset[str],
    load_time: float,
    stop_time: float,
) -> None:
    box = make(MODELS, groups=groups, protected=protected)

    walk(box, steps, load_time=load_time, stop_time=stop_time)  # the box checks itself
    box.resume(*Band)
    box.settle()

    assert {box.where(ticket) for ticket in box.tickets} <= {Life.ENDED, Life.REFUSED, Life.CANCELLED}
