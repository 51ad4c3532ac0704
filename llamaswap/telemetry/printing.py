"""Log lines on their way to where somebody reads them: gathered for a moment, written in one piece.

Knows neither what is said nor who reads it.  Writing each line by itself costs more than making it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from twisted.internet.interfaces import IDelayedCall, IReactorTime

GATHER: Final = 0.01  # seconds
MOST_GATHERED: Final = 64 * 1024  # bytes


class Printer:
    """Writes what it is given, in the same order, at the latest `GATHER` seconds later.

    Whoever owns it calls `flush` when nobody turns the reactor any more.

    Args:
        write: takes all of it; an OSError means that nobody reads any more, and is nobody's concern.
    """

    def __init__(self, write: Callable[[bytes], object], clock: IReactorTime) -> None:
        self._write = write
        self._clock = clock
        self._gathered: list[bytes] = []
        self._size = 0
        self._due: IDelayedCall | None = None

    def take(self, data: bytes) -> None:
        """Take some bytes; never raises."""
        self._gathered.append(data)
        self._size += len(data)
        if self._size > MOST_GATHERED:
            self.flush()
        elif self._due is None:
            self._due = self._clock.callLater(GATHER, self._moment_is_over)

    def flush(self) -> None:
        """Write now what there is; never raises, and may be called at any time."""
        gathered, self._gathered = self._gathered, []
        self._size = 0
        if gathered:
            with suppress(OSError):
                self._write(b"".join(gathered))

    def _moment_is_over(self) -> None:
        self._due = None
        self.flush()
