"""The activity table: rows in, pages and sums out.

Synchronous, and no thread of its own: `journal` sees to that.  Knows SQL; what a row means is `record`'s
business, what may be asked is `query`'s, how many rows go in at once is `inserting`'s.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Collection, Sequence
from typing import Any, Final

from llamaswap.activity.histogram import Spread, histogram
from llamaswap.activity.inserting import Insertion
from llamaswap.activity.opening import StoreUnusable, open_database, transaction
from llamaswap.activity.query import SORTS, ActivityQuery
from llamaswap.activity.record import row_json
from llamaswap.activity.rows import FIELDS, INT64, Values, activity_of, text_of

__all__ = ["ActivityStore", "StoreUnusable"]

DEFAULT_ROWS: Final = 1000
MOST_UNASKED: Final = 10_000  # rows that wait for a question; the table holds them in a third of the room
_COUNTED: Final = Insertion("activity", FIELDS)
_NUMBERED: Final = Insertion("activity", f"id, {FIELDS}")
_RANGE: Final = "SELECT count(*), min(speed), max(speed) FROM speeds"
_RANKED: Final = (
    "SELECT place, speed FROM (SELECT speed, row_number() OVER (ORDER BY speed) - 1 AS place FROM speeds)"
    " WHERE place IN (SELECT value FROM json_each(?2))"
)
_BINNED: Final = (
    "SELECT min(CAST((speed - ?2) / ?3 AS INTEGER), ?4) AS bin, count(*) FROM speeds GROUP BY bin"
)

# By the ids alone: whichever index SQLite might prefer would lead it through every row of a model.
_GOOD_ROWS: Final = (
    "SELECT model_id, req_path, duration_ms / 1000.0, metadata_json FROM activity NOT INDEXED"
    " WHERE id >= ?2 AND id < ?3 AND model_id IN (SELECT value FROM json_each(?1))"
    " AND resp_status_code BETWEEN 200 AND 299 AND error_msg = '' AND instr(metadata_json, ?4)"
    " ORDER BY id DESC"
)


class ActivityStore:
    """Rows in a file, kept for ever, or in memory, where only the newest stay.

    Args:
        path: of the file; None keeps the rows in memory.
        max_rows: how many ids stay in memory; below 1 means 1000.

    Raises:
        StoreUnusable: see `opening.open_database`.
    """

    def __init__(self, path: str | None, max_rows: int) -> None:
        self._kept = None if path is not None else (max_rows if max_rows > 0 else DEFAULT_ROWS)
        self._db = open_database(path)
        # Of rows in memory most give way to newer ones before anybody asks: those never see the table.
        self._unasked: deque[Values] = deque(maxlen=self._kept)
        self._last_id = 0  # of rows in memory, which have nobody else to count them

    def add(self, rows: Sequence[Values]) -> list[int]:
        """Add rows in one transaction, all or none; returns their ids in the same order.

        Raises:
            sqlite3.Error: locked for longer than the busy timeout, disk full, and the like.
        """
        if not rows:
            return []
        if self._kept is not None:
            return self._note(rows)
        with transaction(self._db):
            # Nobody else can write meanwhile, so the ids that the table counts up follow each other.
            last = _COUNTED.add(self._db, rows)
        return list(range(last + 1 - len(rows), last + 1))

    def page(self, query: ActivityQuery) -> dict[str, Any]:
        """Answer with one page of rows and the size of the whole; beyond the end a page is empty."""
        where, values = _conditions(query)
        direction = "DESC" if query.descending else "ASC"
        counting = f"SELECT count(*) FROM activity {where}"  # noqa: S608 - its values are bound
        listing = (
            f"SELECT id, {FIELDS} FROM activity {where}"  # noqa: S608 - columns are SORTS', values are bound
            f" ORDER BY {SORTS[query.sort]} {direction}, id {direction} LIMIT ? OFFSET ?"
        )
        offset = min((query.page - 1) * query.limit, INT64)
        self._take_down()
        with transaction(self._db, "DEFERRED"):
            (total,) = self._db.execute(counting, values).fetchone()
            found = self._db.execute(listing, (*values, query.limit, offset)).fetchall()
        return {
            "data": [row_json(row[0], activity_of(row[1:])) for row in found],
            "page": query.page,
            "limit": query.limit,
            "total": total,
            "total_pages": math.ceil(total / query.limit),
        }

    def stats(self, model: str | None) -> dict[str, Any]:
        """Sum up all rows, or those of exactly one model; a negative count is none."""
        self._take_down()
        with transaction(self._db, "DEFERRED"):
            requests, *sums = self._db.execute(
                "SELECT count(*), total(max(input_tokens, 0)), total(max(output_tokens, 0)),"
                " total(max(cache_tokens, 0)) FROM activity WHERE ?1 IS NULL OR model_id = ?1",
                (model,),
            ).fetchone()
            return {
                "total_requests": requests,
                "total_input_tokens": int(sums[0]),
                "total_output_tokens": int(sums[1]),
                "total_cache_tokens": int(sums[2]),
                "prompt_histogram": self._histogram("prompt_per_second", model),
                "gen_histogram": self._histogram("tokens_per_second", model),
            }

    def newest(self) -> int:
        """Return the id of the newest row, 0 if there is none."""
        self._take_down()
        (newest,) = self._db.execute("SELECT max(id) FROM activity").fetchone()
        return newest or 0

    def good_rows(self, models: Collection[str], ids: range, noted: str) -> list[tuple[str, str, float, str]]:
        """Return model, path, seconds and metadata of what these models answered well, newest first.

        Args:
            ids: only rows with these are looked at.
            noted: a key that the metadata has to have.
        """
        self._take_down()
        wanted = (json.dumps(list(models)), ids.start, ids.stop, f'"{noted}":')
        return self._db.execute(_GOOD_ROWS, wanted).fetchall()

    def close(self) -> None:
        """Close the file; nothing else may be called afterwards."""
        self._db.close()

    def _note(self, rows: Sequence[Values]) -> list[int]:
        first = self._last_id + 1
        self._last_id += len(rows)
        self._unasked.extend(rows)
        if len(self._unasked) > MOST_UNASKED:
            self._take_down()
        return list(range(first, self._last_id + 1))

    def _take_down(self) -> None:
        """Put the rows that are only noted into the table: somebody asks."""
        if self._kept is None or not self._unasked:
            return
        first = self._last_id + 1 - len(self._unasked)
        numbered = [(number, *row) for number, row in enumerate(self._unasked, first)]
        with transaction(self._db):
            _NUMBERED.add(self._db, numbered)
            self._db.execute("DELETE FROM activity WHERE id <= ?", (self._last_id - self._kept,))
        self._unasked.clear()

    def _histogram(self, column: str, model: str | None) -> dict[str, Any] | None:
        # SQLite counts and sorts: unlike a loop over a million rows here, that holds up no other thread.
        speeds = (
            f"WITH speeds AS (SELECT {column} AS speed FROM activity"  # noqa: S608 - our columns
            f" WHERE {column} > 0 AND (?1 IS NULL OR model_id = ?1)) "
        )
        (row,) = self._db.execute(speeds + _RANGE, (model,)).fetchall()
        count, low, high = row
        if not count:
            return None
        spread = Spread(count=count, low=low, high=high)
        ranks = json.dumps(spread.ranks())
        by_rank = dict(self._db.execute(speeds + _RANKED, (model, ranks)).fetchall())
        if not spread.bin_size:
            return histogram(spread, {0: count}, by_rank)
        binning = (model, low, spread.bin_size, spread.bins - 1)
        return histogram(spread, dict(self._db.execute(speeds + _BINNED, binning).fetchall()), by_rank)


def _conditions(query: ActivityQuery) -> tuple[str, list[str | int]]:
    tests: list[str] = []
    values: list[str | int] = []
    if query.models:
        tests.append(f"model_id IN ({', '.join('?' * len(query.models))})")
        values.extend(text_of(model) for model in query.models)
    for test, bound in (
        ("ts_created >= ?", query.start),
        ("ts_created <= ?", query.end),
        ("id >= ?", query.min_id),
        ("id <= ?", query.max_id),
    ):
        if bound is not None:
            tests.append(test)
            values.append(bound)
    return (f"WHERE {' AND '.join(tests)}" if tests else ""), values
