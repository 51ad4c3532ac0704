"""Rows that wait to be written: which are next, how many at once, and which are lost when there are too many.

No thread, no clock and no store: `journal` has those.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

from twisted.logger import Logger

from llamaswap.activity.record import Activity
from llamaswap.activity.rows import Values, values_of

ENOUGH: Final = 20  # rows that need not wait for more: a batch of 100 saves 4 us a row, and doubles p99
MOST_AT_ONCE: Final = 256  # rows of a batch
MOST_WAITING: Final = 10_000  # rows


class Entry(Protocol):
    """Somebody who leaves a row."""

    def activity(self) -> Activity:
        """Return the row; asked once, when there is time."""

    def stored(self, row_id: int) -> None:
        """The row can be read under this id; never called for one that is lost."""


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
        self._rows: deque[Values] = deque()  # of the first of them

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def add(self, entry: Entry) -> bool:
        """Take one in; returns whether there are enough to be written at once.

        The row of the one before it is worked out now: a hundred of them together would hold somebody's
        answer up for a millisecond.
        """
        waiting = self._waiting
        waiting.append(entry)
        self.left += 1
        if len(self._rows) < len(waiting) - 1:
            self._work_out(len(waiting) - 1)
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
        waiting, rows = self._waiting, self._rows
        self._work_out(min(len(waiting), MOST_AT_ONCE))
        size = min(len(rows), MOST_AT_ONCE)
        self.gone += size
        return [waiting.popleft() for _ in range(size)], [rows.popleft() for _ in range(size)]

    def _work_out(self, wanted: int) -> None:
        """Have the rows of the first `wanted` entries; one that can't be had goes without a row."""
        waiting, rows = self._waiting, self._rows
        while len(rows) < min(wanted, len(waiting)):
            at = len(rows)
            with self._faults:
                rows.append(values_of(waiting[at].activity()))
            if len(rows) == at:
                del waiting[at]
                self.gone += 1

    def put_back(self, batch: Sequence[Entry], rows: Sequence[Values]) -> None:
        """Take entries back that could not be written; they are the oldest."""
        self._waiting.extendleft(reversed(batch))
        self._rows.extendleft(reversed(rows))
        self.gone -= len(batch)
        self._trim()

    def take_all(self) -> Sequence[Entry]:
        """Take out everything that waits: it is to be written elsewhere."""
        taken = tuple(self._waiting)
        self._waiting.clear()
        self._rows.clear()
        self.gone += len(taken)
        return taken

    def _trim(self) -> None:
        while len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
            if self._rows:
                self._rows.popleft()
            self.gone += 1
            self.dropped += 1
