"""Put many rows into a table with few statements.

Knows SQL's shape for several rows; does not know what the columns mean.

Each statement that runs lets go of the interpreter and has to get it back, for which a busy reactor lets it
wait; and to run one costs as much as a row.  So a batch is cut into a few sizes, whose statements SQLite
keeps ready: 1.6 us a row, where one statement for each row takes 3.1 us and 100 turns of the interpreter.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final

SIZES: Final = (256, 64, 16, 4, 1)
"""Rows of one statement; 256 rows of 16 columns are an eighth of what SQLite lets a statement hold."""


class Insertion:
    """Adds rows to one table.

    Args:
        columns: separated by commas; one that counts by itself may be left out.
    """

    def __init__(self, table: str, columns: str) -> None:
        marks = f"({', '.join('?' * (columns.count(',') + 1))})"
        self._statements = {
            size: f"INSERT INTO {table} ({columns}) VALUES {', '.join([marks] * size)}"  # noqa: S608 - ours
            for size in SIZES
        }

    def add(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]]) -> int:
        """Add rows, within the caller's transaction; returns the id of the last one, 0 for no rows."""
        last = 0
        for part in _parts(rows):
            values = tuple(chain.from_iterable(part))
            last = connection.execute(self._statements[len(part)], values).lastrowid or 0
        return last


def _parts(rows: Sequence[Sequence[Any]]) -> Iterator[Sequence[Sequence[Any]]]:
    start, left = 0, len(rows)
    for size in SIZES:
        while left >= size:
            yield rows[start : start + size]
            start += size
            left -= size
