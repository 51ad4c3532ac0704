"""What signals mean to the daemon: stop, stop at once, or reload.

Knows which one means what, and when.  How a daemon stops or reloads is not its affair;
all it does happens in the reactor's turns, whenever the signal came.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol

from twisted.logger import Logger

TERMINAL = "/dev/tty"
"""The terminal of the session that the process belongs to; without one it can't be opened."""


SAME_WISH = 0.3
"""Seconds for which a second signal is an echo of the first: `timeout`, supervisors and terminals tend to
tell a process, and then its whole group."""


class SignalledReactor(Protocol):
    """What of the reactor has to do with signals."""

    def seconds(self) -> float:
        """Now, on the monotonic clock."""

    def callFromThread(self, call: Callable[..., Any], /, *args: object) -> object:
        """Make this call in the reactor's next turn, which may be its first."""

    def callWhenRunning(self, call: Callable[..., Any], /) -> object:
        """Make it once the reactor runs."""

    def addSystemEventTrigger(self, phase: str, event: str, call: Callable[..., Any], /) -> object:
        """Make it when the reactor begins, or ends."""

    def sigInt(self, number: int) -> object:
        """Stop in its next turn, and have been ended by this signal."""

    def sigTerm(self, number: int) -> object:
        """Likewise."""


class Signals:
    """Heeds SIGTERM, SIGINT and SIGHUP, between any two instructions.

    The first signal to stop lets the daemon end in order, further ones make it hurry.  One that
    comes before the reactor runs is heeded in its first turn.

    Args:
        hurry: told of each further signal to stop; never before the reactor has begun to stop.
        reload: told of SIGHUP, unless the terminal from which the daemon was started is gone: then
            that was its last word, and means that the daemon should go, too.
    """

    _log = Logger()

    def __init__(
        self, reactor: SignalledReactor, *, hurry: Callable[[], None], reload: Callable[[], None]
    ) -> None:
        self._reactor = reactor
        self._hurry = hurry
        self._reload = reload
        self._stopping = False
        self._told_at = 0.0  # seconds on the clock
        self._may_outlive_terminal = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN  # under `nohup`
        self._tied = False
        self._reload_due = False

    def heed(self) -> None:
        """Begin; the reactor does not run yet."""
        signal.signal(signal.SIGHUP, self._hung_up)
        self._heed_stops()
        # As it begins to run, it takes the signals to stop for itself.
        self._reactor.callWhenRunning(self._runs)
        self._reactor.addSystemEventTrigger("before", "shutdown", self._stop_begins)

    def _runs(self) -> None:
        self._heed_stops()
        # Not sooner: who goes into the background leaves his terminal on the way.
        self._tied = not self._may_outlive_terminal and not is_terminal_gone()

    def _heed_stops(self) -> None:
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, self._told_to_stop)

    def _stop_begins(self) -> None:
        """Whoever began it: the reactor must not be stopped twice."""
        self._stopping = True

    def _told_to_stop(self, signum: int, _frame: FrameType | None) -> None:
        now = self._reactor.seconds()
        if self._stopping:
            if now - self._told_at >= SAME_WISH:
                self._told_at = now
                self._reactor.callFromThread(self._hurry)
            return
        self._stopping, self._told_at = True, now
        if signum == signal.SIGINT:
            self._reactor.sigInt(signum)
        else:
            self._reactor.sigTerm(signum)

    def _hung_up(self, signum: int, frame: FrameType | None) -> None:
        if self._tied and is_terminal_gone():
            if not self._stopping:  # a closed terminal may say so twice
                self._reactor.callFromThread(self._log.info, "signals.terminal_closed")
                self._told_to_stop(signum, frame)
        elif not self._reload_due:  # one that is about to begin reads what this one means, too
            self._reload_due = True
            self._reactor.callFromThread(self._reload_now)

    def _reload_now(self) -> None:
        self._reload_due = False
        self._reload()


def is_terminal_gone(path: str = TERMINAL) -> bool:
    """Return whether this process's session has no terminal (any more)."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK))
    except OSError as error:
        return error.errno in (errno.ENXIO, errno.ENODEV, errno.ENOENT)
    return False
