"""The running daemon: it listens, tells the service manager, reloads, and stops in order."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.logger import Logger, globalLogPublisher
from typing_extensions import override

from llamaswap.activity.journal import Journal
from llamaswap.activity.store import ActivityStore, StoreUnusable
from llamaswap.config.model import Config, SchedulerName
from llamaswap.doors import USUAL_DESCRIPTORS, Doors, room_for
from llamaswap.ending import Ending
from llamaswap.engine import Engine
from llamaswap.generation import Generation
from llamaswap.http1.client import Pool
from llamaswap.http1.exchange import Exchange
from llamaswap.loops import leads_here, loops_of
from llamaswap.metering.captures import MIB, Captures
from llamaswap.places import CannotListen, Places
from llamaswap.preload import Preloads
from llamaswap.processes.probing import make_prober
from llamaswap.processes.spawning import make_children
from llamaswap.seeding import Seeding
from llamaswap.supervision import Supervisor
from llamaswap.surroundings import DaemonReactor, Surroundings
from llamaswap.telemetry.inflight import InFlight
from llamaswap.telemetry.loglines import Logbooks, LogLines
from llamaswap.telemetry.memory import available_bytes
from llamaswap.telemetry.resources import Resources
from llamaswap.telemetry.sampler import Sample, Sampler
from llamaswap.telemetry.sensing import make_hardware, make_sampler

STOP_BUDGET = 30.0
"""Seconds that a stop may take: first for the running jobs, what is left for the children."""

LEAST_CHILD_GRACE = 2.0
"""Seconds a child gets to end by itself even when the jobs used the budget up, or somebody is in a hurry."""

LAST_WORDS = 0.25
"""Seconds for those who are connected but have not said what they want, where nobody else is to be turned
away by a stop."""


class CannotStart(Exception):
    """The daemon can't begin: one line that says why."""


class LlamaSwapService(Service):
    """One daemon.  Several may live in one process.

    Args:
        config: what to serve.
        listen: Twisted endpoint descriptions.
        reactor: everything happens here; its clock should be monotonic.
        environ: what children inherit, and where systemd's socket is named.
        wall: unix seconds, for rows and pages.
        descriptors: how many this process may have open.
    """

    _log = Logger()

    def __init__(
        self,
        config: Config,
        listen: Sequence[str],
        *,
        reactor: DaemonReactor,
        environ: Mapping[str, str],
        wall: Callable[[], float],
        descriptors: int = USUAL_DESCRIPTORS,
    ) -> None:
        self._config = config
        self._places = Places(listen, reactor)
        self._reactor = reactor
        self._supervisor = Supervisor(environ, reactor)
        self.books = Logbooks(config.log_to_stdout)
        self.lines = LogLines(self.books.proxy, config.log_level, config.log_time_format)
        self._children = make_children(reactor, environ)
        self._pool = Pool(reactor)
        self._around = Surroundings(
            reactor=reactor,
            books=self.books,
            journal=self._make_journal(config),
            captures=Captures(config.capture_buffer * MIB),
            inflight=InFlight(reactor, wall),
            hardware=make_hardware(reactor, wall),
            sampler=None if config.performance.disabled else self._make_sampler(config, wall),
            wall=wall,
            lines=self.lines,
            mark=b"llamaswap-" + secrets.token_hex(4).encode(),
        )
        self.engine = Engine(
            config,
            reactor=reactor,
            children=self._children,
            prober=make_prober(reactor),
            pool=self._pool,
            books=self.books,
            is_own=lambda address: leads_here(address, self.addresses()),
            memory_bytes=available_bytes(Path("/")),
        )
        if self._around.sampler is not None:
            self.engine.metrics.watch(Resources(self._latest_sample))
        self._generation = self._make_generation()
        self._preloads = Preloads(self.engine.dispatcher, reactor)
        self._seeding = Seeding(self.engine.estimates)
        self._ending = Ending(
            self.engine,
            reactor,
            budget=STOP_BUDGET,
            grace=LEAST_CHILD_GRACE,
            elsewhere=self._around.abroad.when_none,
        )
        self._site = Doors(self._handle, reactor, most=room_for(descriptors), ceilings=self.engine.ceilings)
        self._closing: list[Deferred[None]] = []  # journals of stores that a reload has replaced

    @override
    def startService(self) -> None:
        """Open the store, listen, queue the preloads.

        Raises:
            CannotStart: the store cannot be used, or an address is taken; nothing is left open then.
        """
        globalLogPublisher.addObserver(self.lines)
        try:
            self._open()
        except CannotStart:
            self._give_up()
            raise
        self._seeding.begin(self._config, self._around.journal)
        # Behind the ports: a daemon whose address is taken must not load anything.  No request can be
        # quicker, since none is read before this turn of the reactor is over.
        self._preload(self._config.preload)
        super().startService()  # type: ignore[no-untyped-call]  # Twisted's Service is untyped
        self._around.hardware.start()
        if self._around.sampler is not None:
            self._around.sampler.start()
        self._tell_settings()
        self._log.info("service.started listening={places}", places=self._places.shown())
        # In the reactor's first turn: before that, a signal to stop would find nobody to heed it.
        self._reactor.callLater(0, self._tell_ready)

    @override
    def stopService(self) -> Deferred[None]:
        """Refuse who waits, let the running jobs end, stop the children, keep every row."""
        super().stopService()  # type: ignore[no-untyped-call]  # Twisted's Service is untyped
        return Deferred.fromCoroutine(self._stop())

    def hurry(self) -> None:
        """Cut what runs, and give the children little time: whoever stops us does not want to wait.

        For a stop that is under way or about to begin; again, to give them none.
        """
        self._supervisor.status("stopping at once")
        self._ending.hurry()

    def kept(self, why: str) -> None:
        """Tell the service manager that a reload changed nothing, for this reason (one line)."""
        self._supervisor.reloading()
        self._supervisor.ready(f"kept the configuration: {why}; listening on {self._places.shown()}")

    def addresses(self) -> Sequence[object]:
        """Return where it listens, as Twisted addresses; a port that was asked for as 0 is known here.

        Also while it stops: its running jobs may need a load when the ports are closed already.
        """
        return self._places.addresses

    @property
    def ports(self) -> Mapping[str, int]:
        """The port of every configured model that was given one: a reload should not take it away."""
        return {name: model.port for name, model in self._config.models.items() if model.port is not None}

    def reload(self, config: Config) -> None:
        """Go on under another configuration, from the next request on.

        What runs and still fits keeps running, with its streams; what does not,
        stops when its job is done.  Who waits keeps his place.  Settings of the
        listeners, of `logToStdout`, of `metricsMaxInMemory` and of a monitor
        that was off at the start need a restart.

        Raises:
            CannotStart: the new store cannot be used; nothing has changed then.
        """
        self._supervisor.reloading()
        status = "kept the configuration: the new one cannot be used"
        try:
            self._take_over(config)
            status = "reloaded"
        finally:
            self._supervisor.ready(f"{status}; listening on {self._places.shown()}")

    def _take_over(self, config: Config) -> None:
        old_config, old_generation = self._config, self._generation
        if config.store_path != old_config.store_path:
            self._change_store(config)
        self._around.captures.resize(config.capture_buffer * MIB)
        if config.performance != old_config.performance and self._around.sampler is not None:
            self._change_sampler(self._around.sampler, config)
        self._config = config
        self.lines.set_style(config.log_level, config.log_time_format)
        self.engine.reconfigure(config)
        self._seeding.begin(config, self._around.journal)
        self._site.take_up()
        self._generation = self._make_generation()
        old_generation.end()
        self._preload([model for model in config.preload if model not in old_config.preload])
        self._tell_settings()
        self._log.info("service.reloaded models={models}", models=len(config.models))

    def _preload(self, models: Sequence[str]) -> None:
        self._preloads.begin(models, in_turn=self._config.scheduler.use is SchedulerName.FIFO)

    def _change_store(self, config: Config) -> None:
        journal, old_journal = self._make_journal(config), self._around.journal
        _start(journal)
        self._around.captures.clear()  # they go by the ids of the old store's rows
        self._around = replace(self._around, journal=journal)
        self._closing.append(old_journal.hand_over(journal))

    def _change_sampler(self, old: Sampler, config: Config) -> None:
        """Begin a new history; one that is switched off stays empty, as in llama-swap."""
        old.stop()
        sampler = self._make_sampler(config, self._around.wall)
        self._around = replace(self._around, sampler=sampler)
        if not config.performance.disabled:
            sampler.start()

    def _latest_sample(self) -> Sample | None:
        sampler = self._around.sampler
        return None if sampler is None else sampler.latest()

    def _handle(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        return self._generation.handle(exchange)

    def _tell_ready(self) -> None:
        self._supervisor.ready(f"listening on {self._places.shown()}")
        self._supervisor.begin_signs_of_life()

    async def _stop(self) -> None:
        began = self._reactor.seconds()
        self._ending.begin()
        jobs = len(self.engine.view().jobs) + self._around.abroad.now
        self._supervisor.stopping(f"waiting for {jobs} running job{'' if jobs == 1 else 's'}")
        self._log.info("service.stopping")
        self.engine.dispatcher.close()
        self._generation.end_streams()
        self._site.guard(())
        await self._places.close()
        await self._hear_last_words()
        self._site.close_idle()
        await self._ending.jobs()
        self._supervisor.status("waiting for the models' servers to end")
        self._generation.end()
        self._preloads.end()
        await self._ending.servers()
        await self._ending.answers(lambda: self._site.untaken)
        self._site.abort_all()
        # A cut connection tells its handler in the next turn; the handler leaves a row.
        await deferLater(self._reactor, 0)
        self._around.inflight.cancel_all()  # what is still read although its client has left
        if self._around.sampler is not None:
            self._around.sampler.stop()
        self._pool.close()
        await self._children.close()
        for closing in (*self._closing, self._around.journal.close()):
            await closing
        self._supervisor.end_signs_of_life()
        self._log.info("service.stopped seconds={seconds:.1f}", seconds=self._reactor.seconds() - began)
        globalLogPublisher.removeObserver(self.lines)

    async def _hear_last_words(self) -> None:
        """Let who was accepted a moment ago ask: where a socket stays open, nobody is to be cut off."""
        self._site.closing = True
        if self._site.connections and not self._ending.in_a_hurry and self._places.outlive_us:
            await deferLater(self._reactor, LAST_WORDS)

    def _make_generation(self) -> Generation:
        generation = Generation(self._config, self.engine, self._pool, self._around)
        self.engine.told = generation.state_changed
        self.engine.dispatcher.tell(generation.queue_changed)
        return generation

    def _make_journal(self, config: Config) -> Journal:
        path, most = config.store_path, config.metrics_max_in_memory
        return Journal(lambda: ActivityStore(path, most), self._reactor, self._row_written)

    def _row_written(self, row_id: int) -> None:
        """Tell those who read events now, whichever generation the request came to."""
        self._generation.row_written(row_id)

    def _make_sampler(self, config: Config, wall: Callable[[], float]) -> Sampler:
        return make_sampler(self._reactor, wall, config.performance.every_ms / 1000)

    def _open(self) -> None:
        _start(self._around.journal)
        try:
            self._places.open(self._site)
        except CannotListen as why:
            raise CannotStart(str(why)) from why
        self._site.guard(self._places.ports)

    def _give_up(self) -> None:
        """Undo what a start has begun that failed."""
        self._around.journal.close()
        globalLogPublisher.removeObserver(self.lines)

    def _tell_settings(self) -> None:
        """Say once what the configuration means: its warnings, and the two knobs in seconds."""
        for warning in self._config.warnings:
            self._log.warn("config.warning {warning}", warning=warning)
        for path, proxy in loops_of(self._config, self.addresses()):
            self._log.error("config.led_back path={path} proxy={proxy}", path=path, proxy=proxy)
        serial = self._config.scheduler.serial
        if self._config.scheduler.use is SchedulerName.SERIAL:
            self._log.info(
                "scheduler.serial band_head_start={head_start} affinity_window={window}",
                head_start=_lead(100, serial.aging_divisor),
                window=_lead(serial.swap_affinity_bonus, serial.aging_divisor),
            )


def _lead(points: int, divisor: float) -> str:
    """Return how much earlier one must come to make up for so many points; without aging nobody can."""
    return f"{points * divisor:g}s" if divisor or not points else "unbounded"


def _start(journal: Journal) -> None:
    try:
        journal.start()
    except StoreUnusable as unusable:
        raise CannotStart(f"{unusable.path}: {unusable.why}") from unusable
