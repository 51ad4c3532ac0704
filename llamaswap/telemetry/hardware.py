"""What the daemon runs on: found out once, away from the reactor's thread, for `/api/hardware`.

Knows what the answer is made of; the machine's files are `llamaswap.telemetry.machine`'s subject and the
drivers' words those of the modules that talk to them.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from twisted.internet.defer import Deferred, maybeDeferred, succeed
from twisted.internet.defer import TimeoutError as TookTooLong
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

import llamaswap
from llamaswap.telemetry.errand import Run
from llamaswap.telemetry.gpu import GpuFacts, GpuSource
from llamaswap.telemetry.machine import Uname, describe
from llamaswap.telemetry.sources import SourceAbsent, SourceFailed
from llamaswap.telemetry.stamps import microseconds, write_utc

PATIENCE: Final = 10.0  # seconds

JsonObject = dict[str, Any]


class Hardware:
    """The snapshot, once it is there.

    Args:
        inspect: finds out; may block.
        run: runs what may block.
        wall: unix seconds.
    """

    _log = Logger()

    def __init__(
        self, inspect: Callable[[], JsonObject], *, run: Run, clock: IReactorTime, wall: Callable[[], float]
    ) -> None:
        self._inspect = inspect
        self._run = run
        self._clock = clock
        self._wall = wall
        self._snapshot: JsonObject | None = None
        self._done = False
        self._waiting: list[Deferred[JsonObject | None]] = []

    def start(self) -> None:
        """Find out, once, within `PATIENCE` seconds."""
        asked = maybeDeferred(self._run, self._inspect)
        asked.addTimeout(PATIENCE, self._clock)
        asked.addCallbacks(self._found, self._failed)
        asked.addBoth(self._answer_all)

    def snapshot(self) -> Deferred[JsonObject | None]:
        """Return the snapshot as soon as it is there; None if it could not be taken."""
        if self._done:
            return succeed(self._snapshot)
        waiting: Deferred[JsonObject | None] = Deferred(self._left)
        self._waiting.append(waiting)
        return waiting

    def _left(self, waiting: Deferred[JsonObject | None]) -> None:
        self._waiting.remove(waiting)

    def _found(self, facts: JsonObject) -> None:
        taken = write_utc(microseconds(self._wall()))
        self._snapshot = {"schema_version": 1, "captured_at": taken, "capture": _capture(), **facts}

    def _failed(self, failure: Failure) -> None:
        if failure.check(SourceFailed, TookTooLong):
            self._log.warn("telemetry.hardware_unknown why={why}", why=str(failure.value))
        else:
            self._log.failure("telemetry.inspection_broke", failure)

    def _answer_all(self, _result: None) -> None:
        self._done = True
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.callback(self._snapshot)


def inspect(open_gpus: Callable[[], GpuSource], root: Path = Path("/")) -> JsonObject:
    """Find out everything; may block.

    Raises:
        SourceFailed: a driver is in trouble, so that nobody knows what is there.
    """
    kernel, page_bytes = platform.uname(), os.sysconf("SC_PAGE_SIZE")
    facts = describe(root, Uname(kernel.system, kernel.release, kernel.machine), page_bytes)
    if facts["memory"]["capacity_bytes"] is None:
        facts["memory"]["capacity_bytes"] = os.sysconf("SC_PHYS_PAGES") * page_bytes
    return {**facts, "accelerators": accelerators(_gpus(open_gpus))}


def accelerators(gpus: Sequence[GpuFacts]) -> list[JsonObject]:
    """Show graphics processors; what is not known is null."""
    return [
        {
            "index": index,
            "kind": "gpu",
            "vendor": gpu.vendor,
            "model": gpu.model,
            "architecture": gpu.architecture,
            "memory": {"kind": gpu.memory_kind, "capacity_bytes": gpu.memory_bytes},
            "driver": None if gpu.driver is None else {"name": gpu.driver, "version": gpu.driver_version},
            "power_limit_watts": gpu.power_limit_watts,
        }
        for index, gpu in enumerate(gpus)
    ]


def _gpus(open_gpus: Callable[[], GpuSource]) -> Sequence[GpuFacts]:
    try:
        source = open_gpus()
    except SourceAbsent:
        return ()
    try:
        return source.describe()
    finally:
        source.close()


def _capture() -> JsonObject:
    detector = {"name": "llamaswap", "version": llamaswap.__version__}
    return {"scope": "inference_host", "method": "detected", "detector": detector}
