"""A crowd that waits at the real dispatcher.

The engine (dispatcher, scheduler, model servers, counters) and the log lines are
the daemon's; there are no sockets and no children.  What is timed is what
happens between the end of one job and the moment at which the next caller
holds its lease.  Which crowds are compared is not known here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from bench.launching import Failed
from llamaswap.config.model import Config, GroupConfig, ModelConfig, SchedulerConfig, SchedulerName
from llamaswap.engine import Engine
from llamaswap.http1.client import Pool
from llamaswap.processes.child import Ending, Order
from llamaswap.processes.health import Answer, Question
from llamaswap.telemetry.loglines import Logbooks

PRIORITIES = (-100, -100, 0, 0, 0, 0, 100)
TICK = 0.01  # seconds of the crowd's clock between two arrivals, so that aging reorders them


@dataclass(frozen=True, slots=True)
class Pace:
    """How long dispatches took, in seconds."""

    mean: float
    median: float
    p99: float


class _Child:
    """A child that has nothing to do."""

    pid = 1

    def terminate(self) -> None:
        """Nobody is asked to go here."""

    def terminate_rest(self) -> None:
        """Nor here."""

    def kill(self) -> None:
        """Nobody is ended here."""


class _Children:
    """Starts what has nothing to do; a `ChildRunner`."""

    def spawn(self, order: Order, output: Callable[[bytes], None], ended: Callable[[Ending], None]) -> _Child:
        """It runs at once."""
        return _Child()

    def close(self) -> Deferred[None]:
        """There is nothing to end."""
        return succeed(None)


class _Prober:
    """Models with `checkEndpoint: none` ask nothing; a `Prober`."""

    def ask(self, question: Question, timeout: float) -> Deferred[Answer]:
        """It was not meant to be asked."""
        raise AssertionError("nobody has to be probed")


class Crowd:
    """A dispatcher, one caller with the lease, and others who wait.

    Args:
        models: how many there are.
        loaded: how many of them are loaded; only these are asked for, so that no dispatch has to load one.
        waiting: how many callers wait, at any moment between two dispatches.
    """

    def __init__(self, models: int, loaded: int, waiting: int) -> None:
        names = [f"model-{number:03}" for number in range(models)]
        self._clock = Clock()
        self._loaded = names[:loaded]
        self._dice = random.Random(20)
        self._leases = 0
        self._job: Deferred[None] = Deferred()  # of whoever holds the lease
        reactor: Any = self._clock  # nothing but time is asked of it here
        engine = Engine(
            _config(names),
            reactor=reactor,
            children=_Children(),
            prober=_Prober(),
            pool=Pool(reactor),
            books=Logbooks("proxy"),
        )
        self._dispatcher = engine.dispatcher
        for name in self._loaded:
            engine.fleet[name].ensure_ready()
        for _ in range(waiting + 1):
            self._arrive()

    def dispatch(self) -> float:
        """Let the running job end; returns the seconds until another caller held its lease."""
        job, leases = self._job, self._leases
        began = perf_counter()
        job.callback(None)
        took = perf_counter() - began
        if self._leases != leases + 1:
            raise Failed("the end of a job was not the beginning of the next one")
        self._arrive()
        return took

    def waiting(self) -> int:
        """How many wait now."""
        return sum(band.depth for band in self._dispatcher.view().bands.values())

    def pace(self, dispatches: int) -> Pace:
        """Dispatch so often, the crowd staying as large as it is."""
        times = sorted(self.dispatch() for _ in range(dispatches))
        return Pace(sum(times) / dispatches, times[dispatches // 2], times[dispatches * 99 // 100])

    def _arrive(self) -> None:
        self._clock.advance(TICK)
        caller = self._call(self._dice.choice(self._loaded), self._dice.choice(PRIORITIES))
        Deferred.fromCoroutine(caller)

    async def _call(self, model: str, priority: int) -> None:
        async with self._dispatcher.lease(model, priority):
            self._leases += 1
            self._job = job = Deferred[None]()
            await job


def _config(names: Sequence[str]) -> Config:
    """All of these may be loaded side by side, and one job runs at a time."""
    models = {
        name: ModelConfig(
            id=name, cmd="serve", argv=("serve",), proxy="http://127.0.0.1:1", check_endpoint="none"
        )
        for name in names
    }
    group = GroupConfig(id="together", swap=False, members=tuple(sorted(names)))
    scheduler = SchedulerConfig(use=SchedulerName.SERIAL, configured=True)
    return Config(models=models, groups=(group,), scheduler=scheduler)
