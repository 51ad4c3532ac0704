"""Log lines on their way to where somebody reads them: gathered for a moment, written in one piece.

Knows neither what is said nor who reads it.  Writing each line by itself costs more than making it, and
writing to a pipe or a terminal that nobody reads any more would stop everything else.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from typing import Final

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

GATHER: Final = 0.01  # seconds
MOST_GATHERED: Final = 64 * 1024  # bytes
LOOK_AGAIN: Final = 0.1  # seconds between two tries to write to a reader that is behind
MOST_KEPT: Final = 1024 * 1024  # bytes for such a reader; it misses what is more
LAST_WORDS: Final = 1.0  # seconds that such a reader is waited for at the end

Write = Callable[[bytes, float], int]
"""Takes bytes, and seconds to wait for room; returns how many were written.

An OSError means that nobody reads any more, and is nobody's concern.
"""


class Printer:
    """Writes what it is given, in the same order, `GATHER` seconds later or as soon as there is room for it.

    Whoever owns it calls `finish` when nobody turns the reactor any more.
    """

    _log = Logger()

    def __init__(self, write: Write, clock: IReactorTime) -> None:
        self._write = write
        self._clock = clock
        self._gathered: list[bytes] = []
        self._size = 0
        self._lost = 0  # bytes that there was no room for
        self._behind = False
        self._due: IDelayedCall | None = None

    def take(self, data: bytes) -> None:
        """Take some bytes; never raises, and never waits."""
        if self._behind and self._size + len(data) > MOST_KEPT:
            self._lost += len(data)
            return
        self._gathered.append(data)
        self._size += len(data)
        if self._due is None:
            self._due = self._clock.callLater(GATHER, self._moment_is_over)
        if self._size > MOST_GATHERED and not self._behind:
            self._flush()

    def finish(self) -> None:
        """Write now what there is; never raises, and waits for nobody who does not read."""
        while self._gathered:
            self._flush(LAST_WORDS)
            if self._behind:
                break

    def _flush(self, patience: float = 0.0) -> None:
        gathered = b"".join(self._gathered)
        try:
            rest = gathered[self._write(gathered, patience) :] if gathered else b""
        except OSError:
            rest = b""
        self._behind = bool(rest)
        self._gathered, self._size = [rest] if rest else [], len(rest)
        if self._lost and not rest:
            lost, self._lost = self._lost, 0
            self._log.warn("printing.reader_lags lost_bytes={lost}", lost=lost)  # and is printed, too

    def _moment_is_over(self) -> None:
        self._due = None
        self._flush()
        if self._gathered:
            self._due = self._clock.callLater(LOOK_AGAIN, self._moment_is_over)


def writing_to(descriptor: int) -> Write:
    """Return what writes to a file, a pipe, a socket or a terminal, and never waits longer than it may.

    The descriptor is not made non-blocking: others share it, a shell above all.
    """
    if os.isatty(descriptor):
        descriptor = _of_our_own(descriptor)
    room = select.poll()
    room.register(descriptor, select.POLLOUT)

    def write(data: bytes, patience: float) -> int:
        written = 0
        # As much as a pipe takes at once where it has room at all.
        while written < len(data) and room.poll(patience * 1000):
            try:
                written += os.write(descriptor, data[written : written + select.PIPE_BUF])
            except BlockingIOError:
                break
        return written

    return write


def _of_our_own(terminal: int) -> int:
    """Open a terminal once more, so that this descriptor need not block; where it cannot be, itself."""
    try:
        return os.open(f"/proc/self/fd/{terminal}", os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return terminal
