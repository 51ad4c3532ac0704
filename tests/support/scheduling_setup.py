"""Boxes ready to use: each scheduler with its planner, and the configurations that tests need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from typing_extensions import override

from llamaswap.config.model import GroupConfig, ModelConfig, SerialSettings
from llamaswap.scheduling.estimates import Estimates
from llamaswap.scheduling.fifo import FifoScheduler
from llamaswap.scheduling.groups import GroupPlanner
from llamaswap.scheduling.serial import SerialScheduler
from support.scheduling_box import Box


class Known(Estimates):
    """Estimates that are known beforehand, to the last digit, and are never learned."""

    def __init__(self, runs: Mapping[str, float]) -> None:
        super().__init__()
        self.runs_of = dict(runs)

    @override
    def expected_run(self, model: str) -> float | None:
        return self.runs_of.get(model)


def models_named(
    names: Iterable[str], limits: Mapping[str, int] | None = None, protected: Iterable[str] = ()
) -> dict[str, ModelConfig]:
    """Return a model for each name, with the limits that are given; some are protected."""
    kept = frozenset(protected)
    return {
        name: ModelConfig(id=name, concurrency_limit=(limits or {}).get(name, 0), protected=name in kept)
        for name in names
    }


def rivals(names: Iterable[str]) -> tuple[GroupConfig, ...]:
    """Return one group whose members evict each other."""
    return (GroupConfig(id="(default)", members=tuple(sorted(names))),)


def serial_box(
    names: Iterable[str] = "AB",
    *,
    groups: Sequence[GroupConfig] | None = None,
    limits: Mapping[str, int] | None = None,
    divisor: float = 60.0,
    bonus: int = 10,
    width: Mapping[str, int] | None = None,
    swap_budget: float = 0.0,
    runs: Mapping[str, float] | None = None,
    protected: Iterable[str] = (),
) -> Box:
    """Return a box under the serial scheduler; without `groups` its models evict each other.

    Args:
        names: of the models.
        groups: which of them evict which.
        limits: requests at once, by model.
        divisor: seconds per point.
        bonus: points.
        width: jobs at once, by model.
        swap_budget: seconds.
        runs: how long a job is expected to take, by model, in seconds; others were never measured.
        protected: which keep their place while they run.
    """
    names = tuple(names)
    make_room = GroupPlanner(rivals(names) if groups is None else groups).make_room
    settings = SerialSettings(
        aging_divisor=divisor, swap_affinity_bonus=bonus, width=width or {}, swap_budget=swap_budget
    )
    estimates = Known(runs or {})
    models = models_named(names, limits, protected)
    scheduler = SerialScheduler(settings, models, make_room, estimates=estimates)
    return Box(scheduler, make_room, one_job=True, width=width, protected=protected)


def fifo_box(
    names: Iterable[str] = "AB",
    *,
    groups: Sequence[GroupConfig] | None = None,
    limits: Mapping[str, int] | None = None,
    priorities: Mapping[str, int] | None = None,
    protected: Iterable[str] = (),
) -> Box:
    """Return a box under the fifo scheduler; without `groups` its models evict each other."""
    names = tuple(names)
    make_room = GroupPlanner(rivals(names) if groups is None else groups).make_room
    scheduler = FifoScheduler(priorities or {}, models_named(names, limits, protected), make_room)
    return Box(scheduler, make_room, one_job=False, protected=protected)
