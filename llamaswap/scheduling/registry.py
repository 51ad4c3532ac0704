"""Which scheduler and which planner a configuration asks for.  A new one is a line here."""

from __future__ import annotations

from functools import lru_cache
from typing import assert_never

from llamaswap.config.model import Config, SchedulerName
from llamaswap.scheduling.estimates import Estimates
from llamaswap.scheduling.fifo import FifoScheduler
from llamaswap.scheduling.groups import GroupPlanner
from llamaswap.scheduling.matrix import MatrixPlanner
from llamaswap.scheduling.protocol import Scheduler
from llamaswap.scheduling.serial import SerialScheduler
from llamaswap.scheduling.vocabulary import MakeRoom

REMEMBERED = 4096
"""Answers of a planner that are kept: the same few questions come back with every request."""


def make_planner(config: Config) -> MakeRoom:
    """Return the eviction planner that the configuration asks for; it answers a question once."""
    return lru_cache(REMEMBERED)(_planner(config))


def _planner(config: Config) -> MakeRoom:
    if config.router == "matrix" and config.matrix is not None:
        return MatrixPlanner(config.matrix).make_room
    return GroupPlanner(config.groups).make_room


def _of_others(plan: MakeRoom) -> MakeRoom:
    """Return a planner that counts nobody as running because of itself, and answers a question once.

    A matrix lets a model that runs evict nobody, since whatever runs beside it was loaded by its rules;
    after a reload that need not be so.
    """
    return lru_cache(REMEMBERED)(lambda target, running: plan(target, running - {target}))


def make_scheduler(config: Config, estimates: Estimates | None = None) -> Scheduler:
    """Return a fresh scheduler with an empty queue.

    Args:
        config: what it obeys.
        estimates: how long things take; whoever measures adds to them, and they outlive a reload.
    """
    make_room = _of_others(_planner(config))
    match config.scheduler.use:
        case SchedulerName.SERIAL:
            offset = max((caller.offset for caller in config.priorities.callers), default=0)
            serial = config.scheduler.serial
            return SerialScheduler(serial, config.models, make_room, config.router, estimates, offset)
        case SchedulerName.FIFO:
            return FifoScheduler(config.scheduler.fifo_priority, config.models, make_room, config.router)
        case _ as unknown:
            assert_never(unknown)
