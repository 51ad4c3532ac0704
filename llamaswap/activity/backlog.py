"""Rows that wait to be written: which are next, how many at once, and which are lost when there are too many.

No thread, no clock and no store: `journal` has those.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from twisted.logger import Logger

from llamaswap.activity.record import Activity
from llamaswap.activity.rows import Values, values_of

ENOUGH: Final = 100  # rows that need not wait for more: gathering more of them would save 0.4 us a row
MOST_AT_ONCE: Final = 256  # rows of a batch; to make it up holds the reactor for a millisecond
MOST_WAITING: Final = 10_000  # rows

Stored = Callable[[int], None]
"""Told the id of a row that has been stored."""


class Entry(Protocol):
    """Somebody who leaves a row."""

    def activity(self) -> Activity:
        """Return the row; asked shortly before it is written, and again if that fails."""

    def stored(self, row_id: int) -> None:
        """The row can be read under this id; never called for one that is lost."""


class Ready:
    """An entry whose row was there from the beginning."""

    __slots__ = ("_row", "_stored")

    def __init__(self, row: Activity, stored: Stored | None) -> None:
        self._row = row
        self._stored = stored

    def activity(self) -> Activity:
        """Return the row."""
        return self._row

    def stored(self, row_id: int) -> None:
        """Pass the id on, if somebody wants to know."""
        if self._stored is not None:
            self._stored(row_id)


class Backlog:
    """The newest `MOST_WAITING` rows that nobody has written yet, in the order of their arrival."""

    _log = Logger()
    # A fault of who left one row must not cost the rows behind it: their loop goes on where it was.
    _faults = _log.failureHandler("activity.journal_broke")

    def __init__(self) -> None:
        self.left = 0  # rows that ever came
        self.gone = 0  # of these, how many were taken or lost; they go in order
        self.dropped = 0  # rows lost; whoever tells of them sets it back
        self._wanted = 0  # so many have to go without waiting for others
        self._waiting: deque[Entry] = deque()

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def add(self, entry: Entry) -> bool:
        """Take one in; returns whether there are enough to be written at once."""
        self._waiting.append(entry)
        self.left += 1
        if len(self._waiting) < ENOUGH:
            return False
        self._trim()
        return True

    def want_all(self) -> None:
        """Those that wait now are to go without waiting for others."""
        self._wanted = self.left

    @property
    def due(self) -> bool:
        """Whether a batch is to be written now."""
        waiting = len(self._waiting)
        return waiting >= ENOUGH or (waiting > 0 and self.gone < self._wanted)

    def next_batch(self) -> tuple[Sequence[Entry], Sequence[Values]]:
        """Take the next entries out, with what is to be written of each."""
        waiting = self._waiting
        taken = [waiting.popleft() for _ in range(min(len(waiting), MOST_AT_ONCE))]
        self.gone += len(taken)
        batch: list[Entry] = []
        rows: list[Values] = []
        left, ready = iter(taken), False
        while not ready:
            with self._faults:
                for entry in left:
                    rows.append(values_of(entry.activity()))
                    batch.append(entry)
                ready = True
        return batch, rows

    def put_back(self, batch: Sequence[Entry]) -> None:
        """Take entries back that could not be written; they are the oldest."""
        self._waiting.extendleft(reversed(batch))
        self.gone -= len(batch)
        self._trim()

    def take_all(self) -> Sequence[Entry]:
        """Take out everything that waits: it is to be written elsewhere."""
        taken = tuple(self._waiting)
        self._waiting.clear()
        self.gone += len(taken)
        return taken

    def _trim(self) -> None:
        while len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
            self.gone += 1
            self.dropped += 1
