"""Queues for what explains and foresees them: random ones, and boxes whose durations are known.

A box here answers each model's jobs in the same time always, and its estimates
know it, so that a forecast can be held against what then happens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from llamaswap.config.model import GroupConfig, SerialSettings
from llamaswap.scheduling.estimates import Estimates
from llamaswap.scheduling.forecast import Job
from llamaswap.scheduling.groups import GroupPlanner
from llamaswap.scheduling.score import Formula
from llamaswap.scheduling.serial import SerialScheduler
from llamaswap.scheduling.vocabulary import Facts, Ticket
from llamaswap.scheduling.waiting import WaitingRoom
from support.scheduling_box import Box, Life
from support.scheduling_setup import models_named, rivals
from support.scheduling_walks import MODELS, TICK, groupings

RUNS: Mapping[str, float] = {"A": 1.0, "B": 4.0, "C": 9.0, "D": 20.0}  # seconds
LOAD = 3.0  # seconds, of each model

PRIORITIES = st.one_of(
    st.sampled_from([-100, -98, 0, 0, 1, 100, 102]), st.integers(-12, 12), st.integers(-(2**63), 2**63 - 1)
)
MOMENTS = st.integers(0, 64 * 2000).map(lambda ticks: ticks * TICK)


def tickets_from(rows: Sequence[tuple[str, int, float]]) -> list[Ticket]:
    """Number (model, priority, arrival) by arrival."""
    ordered = sorted(rows, key=lambda row: row[2])
    return [
        Ticket(number=number, model=model, priority=priority, arrived=arrived)
        for number, (model, priority, arrived) in enumerate(ordered, 1)
    ]


def queues(*, least: int = 1, most: int = 14) -> st.SearchStrategy[list[Ticket]]:
    """Draw the tickets of a queue, in arrival order."""
    row = st.tuples(st.sampled_from(MODELS), PRIORITIES, MOMENTS)
    return st.lists(row, min_size=least, max_size=most).map(tickets_from)


def room_of(tickets: Sequence[Ticket], formula: Formula) -> WaitingRoom:
    """Return a room in which these wait."""
    room = WaitingRoom(formula)
    for ticket in tickets:
        room.add(ticket)
    return room


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A serial scheduler's knobs, and the planner's groups."""

    divisor: float = 60.0  # seconds
    bonus: int = 10
    budget: float = 0.0  # seconds
    width: Mapping[str, int] = field(default_factory=dict)
    groups: Sequence[GroupConfig] = rivals(MODELS)


SETTINGS = st.builds(
    Setting,
    divisor=st.sampled_from([0.0, 0.5, 60.0]),
    bonus=st.sampled_from([0, 1, 10, 99]),
    budget=st.sampled_from([0.0, 0.0, 2.5, 10.0, 45.0]),
    width=st.dictionaries(st.sampled_from(MODELS), st.integers(1, 3), max_size=3),
    groups=groupings(),
)


def steady_estimates(models: str = MODELS) -> Estimates:
    """Return estimates that have seen these models' runs and loads."""
    estimates = Estimates()
    for model in models:
        estimates.seed(model, [RUNS[model]] * 20, [LOAD] * 20)
    return estimates


def steady_box(setting: Setting, estimates: Estimates) -> Box:
    """Return a box in which everything takes as long as it always does."""
    make_room = GroupPlanner(setting.groups).make_room
    settings = SerialSettings(
        aging_divisor=setting.divisor,
        swap_affinity_bonus=setting.bonus,
        swap_budget=setting.budget,
        width=setting.width,
    )
    scheduler = SerialScheduler(settings, models_named(MODELS), make_room, estimates=estimates)
    box = Box(scheduler, make_room, one_job=not setting.width)
    box.fleet.load_time = LOAD
    return box


def facts_of(box: Box) -> Facts:
    """Return what the box looks like now."""
    return Facts(now=box.clock.seconds(), running=box.fleet.running(), ready=frozenset(box.fleet.ready))


def jobs_of(box: Box) -> list[Job]:
    """Return the jobs of the box as a dispatcher would tell of them."""
    jobs = []
    for number, ticket in box.jobs.items():
        loading = box.life[number] is not Life.SERVING
        since = box.dispatched_at[number] if loading else box.served_at[number]
        jobs.append(Job(ticket=ticket, loading=loading, since=since))
    return jobs
