"""Several traces to one series of arrivals.

Each trace begins at 0, so that traces of different years can be laid over each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from llamaswap.simulation.arrivals import Arrival
from llamaswap.simulation.mapping import TraceMapping
from llamaswap.simulation.packed import PackedArrivals
from llamaswap.simulation.placing import Costs, Placing
from llamaswap.simulation.records import BadLine, Record, Unusable
from llamaswap.simulation.traces import Trace, records, refuse

EVERY = 1000
"""So many records are read between two words about the progress."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """What came together."""

    arrivals: PackedArrivals
    skipped: int  # lines that made no sense
    out_of_order: int  # arrivals that stood behind a later one


def gather(
    traces: Sequence[Trace],
    mapping: TraceMapping,
    costs: Costs,
    *,
    names: Mapping[str, str],
    seed: int = 0,
    speed: float = 1.0,
    limit: int | None = None,
    skip_bad: bool = False,
    progress: Callable[[int], None] = lambda _done: None,
) -> Gathered:
    """Read traces and lay them over each other.

    Args:
        names: model ids by what else they are called.
        speed: how many times as fast the requests come; what they take stays as it is.
        limit: requests that are taken of each trace; None = all.
        skip_bad: leave lines out that make no sense, instead of complaining about the first.
        progress: is told now and then how many requests have been read.

    Raises:
        Unusable: a file can't be used, or has a bad line; there is no request at all.
    """
    arrivals, skipped, early = PackedArrivals(), 0, 0

    def skip(_what: str) -> None:
        nonlocal skipped
        skipped += 1

    for trace in traces:
        placing = Placing(mapping, costs, names, trace.label, seed)
        start = before = None
        for record in islice(records(trace, skip if skip_bad else refuse), limit):
            start = record.at if start is None else start
            early += before is not None and record.at < before
            before = record.at
            arrivals.add(_place(placing, record, trace), (record.at - start) / speed)
            if len(arrivals) % EVERY == 0:
                progress(len(arrivals))
    if not arrivals:
        raise Unusable(f"{', '.join(str(trace.path) for trace in traces)}: no request in there")
    arrivals.sort()
    return Gathered(arrivals, skipped, early)


def _place(placing: Placing, record: Record, trace: Trace) -> Arrival:
    try:
        return placing.arrival(record)
    except BadLine as why:
        raise Unusable(f"{trace.path}: {why}") from why
