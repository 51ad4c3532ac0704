"""Reap the orphans that fall to us where the daemon is the first process of a container.

There the kernel hands every process to us whose parent ended before it, and
nobody else takes note when it ends.  Knows such strangers only: our own
children are Twisted's to reap.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Container

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.process import reapProcessHandlers

from llamaswap.processes.groups import PROC, read_stat

ROUND = 5.0
"""Seconds between two rounds: an ended orphan costs nothing but its number."""


class Orphanage:
    """Makes its rounds for as long as it is open."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._next: IDelayedCall | None = None

    def open(self) -> None:
        """Begin; again while it is open does nothing."""
        if self._next is None:
            self._next = self._clock.callLater(ROUND, self._make_round)

    def close(self) -> None:
        """Make no more rounds."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _make_round(self) -> None:
        self._next = self._clock.callLater(ROUND, self._make_round)
        reap_strangers(reapProcessHandlers)


def reap_strangers(known: Container[int]) -> None:
    """Reap each ended child that is neither `known` nor of our own session.

    Orphans of our children have sessions of their own; what some library
    forked here has ours, and waits for itself.
    """
    us, session = os.getpid(), os.getsid(0)
    for name in os.listdir(PROC):  # noqa: PTH208 - hundreds of names, and only those
        stat = read_stat(int(name)) if name.isdigit() else None
        if stat is None or stat.parent != us or stat.state != "Z":
            continue
        if stat.session != session and stat.pid not in known:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(stat.pid, os.WNOHANG)
