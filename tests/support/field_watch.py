"""Looks at a daemon again and again while a case is played, and remembers what was wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Self

from support.field import Field

PERIOD = 0.05  # seconds between two looks
STUCK = 1.0  # seconds for which requests may wait although no process is there at all


class Watch:
    """A thread that looks every so often; at its end nothing may have been wrong.

    Args:
        look: returns what is wrong now, '' for nothing.
        lasting: seconds for which it has to stay wrong until it counts.
        period: seconds between two looks.
    """

    def __init__(self, look: Callable[[], str], *, lasting: float = 0.0, period: float = PERIOD) -> None:
        self.wrong: list[str] = []
        self.looks = 0
        self._look = look
        self._lasting = lasting
        self._period = period
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._over.set()
        self._thread.join(30.0)
        if kind is None:
            assert self.looks
            assert not self.wrong

    def _run(self) -> None:
        since: float | None = None
        while not self._over.wait(self._period):
            found = self._look()
            self.looks += 1
            now = time.monotonic()
            since = (since or now) if found else None
            if since is not None and now - since >= self._lasting:
                self.wrong.append(found)


def nobody_waits_for_nothing(field: Field) -> Watch:
    """No request waits while no process runs, starts or stops, for longer than a second."""

    def look() -> str:
        waiting, running = field.daemon.waiting(), field.running()
        return f"{waiting} wait, and nothing runs" if waiting and not running else ""

    return Watch(look, lasting=STUCK)


def at_most(field: Field, count: int) -> Watch:
    """No more than so many stubs run at once, by the process list."""

    def look() -> str:
        there = field.processes()
        return f"{len(there)} processes: {there}" if len(there) > count else ""

    return Watch(look, period=0.02)
