"""The daemon's own activity store as a trace, and what it tells of this box: loads, runs, speeds.

The file is opened to be read only, also while a daemon writes to it.  Knows the table; what the
schedulers noted in a row is read by `scheduling.noted`, and the rest of it means nothing here.

A row is written when its answer has ended, and its time is whole seconds: so are the arrivals, give or take.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import quote

from llamaswap.scheduling.noted import Noted, read
from llamaswap.simulation.records import Record, Unusable

ABANDONED = (499, 504)  # the client left, or its own limit ran out
BUSY = 5.0  # seconds to wait for the daemon's lock

_ROWS = (
    "SELECT ts_created, model_id, resp_status_code, duration_ms, input_tokens, output_tokens,"
    " prompt_per_second, tokens_per_second, metadata_json"
    " FROM activity ORDER BY ts_created - duration_ms / 1000.0, id"
)
_SCHEDULED = (
    "SELECT EXISTS (SELECT 1 FROM activity WHERE metadata_json LIKE '%\"serial_priority\"%'"
    " OR metadata_json LIKE '%\"fifo_priority\"%')"
)


class _Job(NamedTuple):
    """One row, in seconds."""

    arrived: float
    model: str
    status: int
    waited: float
    load: float
    run: float | None  # None: it was never dispatched
    prefill: float  # tokens a second; 0 or less where nobody told
    decode: float
    priority: int


@dataclass(frozen=True, slots=True)
class Measured:
    """Medians of what this box has done, by model; a model that never did it is missing."""

    load: Mapping[str, float]  # seconds
    run: Mapping[str, float]  # seconds
    prefill: Mapping[str, float]  # tokens a second
    decode: Mapping[str, float]


def records(path: Path) -> Iterator[Record]:
    """Yield a record for each request that took its turn, in the order of arrival.

    A request that left before its turn leaves after as long, and would have run as long as its model's
    median; without one it is left out.  Rows of peers, and refusals, are not the box's.

    Raises:
        Unusable: it is no activity store, or can't be read.
    """
    runs = measure(path).run
    for job in _jobs(path):
        run = job.run if job.run is not None else runs.get(job.model)
        if run is not None:
            left = job.run is None and job.status in ABANDONED
            yield Record(
                at=job.arrived,
                model=job.model,
                priority=job.priority,
                run=run,
                cancel_after=job.waited if left else None,
            )


def measure(path: Path) -> Measured:
    """Return what the rows tell of each model.

    Raises:
        Unusable: as for `records`.
    """
    kinds: dict[str, defaultdict[str, array[float]]] = {
        kind: defaultdict(lambda: array("d")) for kind in ("load", "run", "prefill", "decode")
    }
    for job in _jobs(path):
        if job.run is None or job.status != 200:
            continue
        kinds["run"][job.model].append(job.run)
        for kind, value in (("load", job.load), ("prefill", job.prefill), ("decode", job.decode)):
            if value > 0:
                kinds[kind][job.model].append(value)
    return Measured(**{kind: {name: median(of) for name, of in by.items()} for kind, by in kinds.items()})


def _jobs(path: Path) -> Iterator[_Job]:
    try:
        with closing(_open(path)) as database:
            (scheduled,) = database.execute(_SCHEDULED).fetchone()
            for row in database.execute(_ROWS):
                told = read(row[-1])
                # A store of llama-swap has no metadata: then every answer is one of the box.
                if told.scheduled if scheduled else row[2] == 200:
                    yield _job(row, told)
    except sqlite3.Error as error:
        raise Unusable(f"{path}: no activity store that can be read: {error}") from error


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, timeout=BUSY)


def _job(row: tuple[float, str, int, int, int, int, float, float, str], told: Noted) -> _Job:
    ended, model, status, lasted_ms, prompt, generated, prefill, decode, _ = row
    lasted = lasted_ms / 1000
    run: float | None = told.run(lasted)
    if told.serial_priority and not told.serial_score:
        run = None
    elif not told.serial_priority:
        # Nobody noted the wait.  The upstream knows its own time, if it told.
        busy = _upstream(prompt, prefill) + _upstream(generated, decode)
        run = min(busy, lasted) if busy > 0 else lasted
    return _Job(ended - lasted, model, status, told.waited, told.load, run, prefill, decode, told.priority)


def _upstream(tokens: int, rate: float) -> float:
    return tokens / rate if tokens > 0 and rate > 0 else 0.0
