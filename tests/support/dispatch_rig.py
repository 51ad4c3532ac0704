"""A dispatcher with a real scheduler and real model servers, on children that do what a test says."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.logger import ILogObserver, LogEvent, LogLevel, globalLogPublisher
from zope.interface import implementer

from llamaswap.ceilings import Ceiling
from llamaswap.config.model import (
    Config,
    GroupConfig,
    ModelConfig,
    SchedulerConfig,
    SchedulerName,
    SerialSettings,
)
from llamaswap.dispatch import Dispatcher
from llamaswap.errors import Refusal
from llamaswap.leases import Abandoned, Bounded, BoxState, Lease, Queued, SwapReason
from llamaswap.processes.fleet import Changed, Fleet, Moved
from llamaswap.processes.lifecycle import State
from llamaswap.processes.logbook import Logbook
from llamaswap.processes.server import ModelServer
from llamaswap.prospects import Prospects
from llamaswap.scheduling.estimates import Estimates
from llamaswap.scheduling.registry import make_scheduler
from llamaswap.scheduling.vocabulary import Band, Verdict
from support.processes_fakes import FakeChild, FakeChildren, FakeProber, a_model


@dataclass
class Tally:
    """Keeps what a dispatcher counts; a `DispatchObserver`."""

    verdicts: list[Verdict] = field(default_factory=list)
    abandoned_in: list[Band] = field(default_factory=list)
    began: list[str] = field(default_factory=list)
    ended: list[tuple[str, float]] = field(default_factory=list)
    swaps: list[tuple[str, SwapReason]] = field(default_factory=list)
    bounds: list[tuple[Band, Bounded]] = field(default_factory=list)
    missed: list[tuple[Band, float]] = field(default_factory=list)
    box_states: list[BoxState] = field(default_factory=list)
    when_loaded: Callable[[], None] = lambda: None  # called between a readiness and the lease

    def dispatched(self, verdict: Verdict) -> None:
        """Noted."""
        self.verdicts.append(verdict)

    def abandoned(self, band: Band) -> None:
        """Noted."""
        self.abandoned_in.append(band)

    def load_began(self, model: str) -> None:
        """Noted."""
        self.began.append(model)

    def load_ended(self, model: str, seconds: float) -> None:
        """Noted."""
        self.ended.append((model, seconds))
        self.when_loaded()

    def swap(self, model: str, reason: SwapReason) -> None:
        """Noted."""
        self.swaps.append((model, reason))

    def bounded(self, band: Band, reason: Bounded) -> None:
        """Noted."""
        self.bounds.append((band, reason))

    def eta_missed(self, band: Band, seconds: float) -> None:
        """Noted."""
        self.missed.append((band, seconds))

    def box(self, state: BoxState, now: float) -> None:
        """Noted."""
        self.box_states.append(state)


class Caller:
    """Somebody who asks for a lease, keeps it until told otherwise, and remembers what happened."""

    def __init__(
        self,
        rig: DispatchRig,
        model: str,
        priority: int = 0,
        *,
        looks_only: bool = False,
        then: Callable[[Caller], None] | None = None,
        queued: Queued | None = None,
        max_wait: float | None = None,
        overrides: bool = False,
        reason: SwapReason = "request",
    ) -> None:
        self.model = model
        self.priority = priority
        self.verdicts: list[Verdict] = []  # what it was told when it was dispatched: at most one
        self.lease: Lease | None = None
        self.refusal: Refusal | None = None
        self.abandoned: Abandoned | None = None
        self.left = False  # cancelled while it held its lease
        self.outcomes = 0  # ends of its coroutine
        self._rig = rig
        self._then = then  # called when it is answered: with a lease or with a refusal
        self._looks_only = looks_only
        self._queued = queued
        self._max_wait = max_wait
        self._overrides = overrides
        self._reason: SwapReason = reason
        self._job: Deferred[None] = Deferred()
        self._task = Deferred.fromCoroutine(self._call())
        self._task.addBoth(self._ended)

    @property
    def serving(self) -> bool:
        """Whether it holds a lease now."""
        return self.lease is not None and not self.outcomes

    @property
    def waiting(self) -> bool:
        """Whether it has neither a lease nor an answer."""
        return self.lease is None and not self.outcomes

    @property
    def done(self) -> bool:
        """Whether its job ended well."""
        return self.outcomes == 1 and self.lease is not None and not self.left

    def finish(self) -> None:
        """Its upstream has answered."""
        self._job.callback(None)

    def leave(self) -> None:
        """Its client goes away."""
        self._task.cancel()

    async def _call(self) -> None:
        try:
            await self._hold()
        except Refusal as refusal:
            self.refusal = refusal
            self._answered()
        except Abandoned as abandoned:
            self.abandoned = abandoned
        except CancelledError:
            self.left = True

    async def _hold(self) -> None:
        async with self._rig.dispatcher.lease(
            self.model,
            self.priority,
            looks_only=self._looks_only,
            told=lambda verdict, _now: self.verdicts.append(verdict),
            queued=self._queued,
            max_wait=self._max_wait,
            overrides=self._overrides,
            reason=self._reason,
        ) as lease:
            self.lease = lease
            self._rig.leased.append(self)
            self._answered()
            await self._job

    def _answered(self) -> None:
        if self._then is not None:
            self._then(self)

    def _ended(self, result: Any) -> Any:
        self.outcomes += 1
        return result


class DispatchRig:
    """One dispatcher and its fleet.

    Args:
        models: ids or whole configurations; they evict each other unless `groups` says otherwise.
    """

    def __init__(
        self,
        *models: str | ModelConfig,
        use: SchedulerName = SchedulerName.SERIAL,
        groups: Sequence[GroupConfig] | None = None,
        serial: SerialSettings | None = None,
    ) -> None:
        configs = [model if isinstance(model, ModelConfig) else a_model(id=model) for model in models]
        names = tuple(sorted(config.id for config in configs))
        self.config = Config(
            models={config.id: config for config in configs},
            groups=(GroupConfig(id="(default)", members=names),) if groups is None else tuple(groups),
            scheduler=SchedulerConfig(use=use, serial=serial or SerialSettings()),
        )
        self.clock = Clock()
        self.children = {name: FakeChildren() for name in names}
        self.probers = {name: FakeProber(self.clock) for name in names}
        self.tally = Tally()
        self.leased: list[Caller] = []  # everybody who got a lease, in order
        self.fleet = Fleet(self._server, lambda _model, _old, _new: None)
        self.fleet.configure(self.config.models)
        self.reached: list[str] = []  # the limits for which somebody was turned away
        self._ceiling = Ceiling("waiting", self.clock, self.reached.append)
        self.estimates = Estimates()
        self.dispatcher = Dispatcher(
            make_scheduler(self.config, self.estimates),
            self.fleet,
            self.clock,
            self.tally,
            self._ceiling,
            self.estimates,
            self.settings,
        )

    @property
    def settings(self) -> SerialSettings | None:
        """What the dispatcher is told of the configuration."""
        scheduler = self.config.scheduler
        return scheduler.serial if scheduler.use is SchedulerName.SERIAL else None

    def reload(self, serial: SerialSettings | None = None) -> None:
        """Go on under other settings, or under fifo without any."""
        use = SchedulerName.FIFO if serial is None else SchedulerName.SERIAL
        scheduler = SchedulerConfig(use=use, serial=serial or SerialSettings())
        self.config = replace(self.config, scheduler=scheduler)
        self.dispatcher.reconfigure(make_scheduler(self.config, self.estimates), self.settings)

    def prospects(self) -> Prospects:
        """What is to be expected of the queue now."""
        queueing = self.dispatcher.queueing
        return queueing.prospects()

    def allow_waiting(self, most: int) -> None:
        """From now on so many may wait."""
        self._ceiling.most = most

    def call(self, model: str, priority: int = 0, **options: Any) -> Caller:
        """Let somebody ask for a lease."""
        return Caller(self, model, priority, **options)

    def child(self, model: str) -> FakeChild:
        """The latest child of a model."""
        return self.children[model].latest

    def starts(self, model: str) -> int:
        """How many children a model has had."""
        return len(self.children[model].started)

    def becomes_ready(self, model: str) -> None:
        """The open probe of a model is answered with 200."""
        self.probers[model].answers(200)

    def warm(self, model: str) -> None:
        """Make a model resident by a job of its own."""
        caller = self.call(model)
        if caller.waiting:
            self.goes(*(name for name in self.fleet if name != model))
            self.becomes_ready(model)
        caller.finish()
        self.leased.remove(caller)

    def goes(self, *models: str) -> None:
        """Children that were asked to stop do so."""
        for model in models:
            for child in self.children[model].alive:
                if child.signals:
                    child.exits()

    def state(self, model: str) -> State:
        """The state of a model's server."""
        return self.fleet[model].state

    def alive(self) -> list[str]:
        """Models with a living child."""
        return [model for model, children in self.children.items() if children.alive]

    def stop_fleet(self) -> None:
        """End everything for good, in good order."""
        self.dispatcher.abandon_loads()
        for model, server in self.fleet.items():
            server.shutdown(5.0)
            for child in self.children[model].alive:
                child.exits()

    def _server(self, model: ModelConfig, changed: Changed, moved: Moved) -> ModelServer:
        return ModelServer(
            model,
            children=self.children[model.id],
            clock=self.clock,
            prober=self.probers[model.id],
            logbook=Logbook(),
            changed=changed,
            may_expire=lambda name: not self.dispatcher.wanted(name),
            moved=moved,
        )


@contextmanager
def nothing_goes_wrong() -> Iterator[None]:
    """Fail when anything is logged as an error meanwhile, a Deferred's unhandled failure included."""
    with troubles() as seen:
        yield
    assert seen == []


@contextmanager
def troubles() -> Iterator[list[str]]:
    """Collect what is logged as critical meanwhile: failures that nobody handled."""
    ear = _Ear()
    gc.collect()
    globalLogPublisher.addObserver(ear)
    try:
        yield ear.heard
        gc.collect()
    finally:
        globalLogPublisher.removeObserver(ear)


@implementer(ILogObserver)
class _Ear:
    """Hears what is critical."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def __call__(self, event: LogEvent) -> None:
        if event.get("log_level") == LogLevel.critical:
            self.heard.append(str(event.get("log_failure") or event.get("log_format")))
