"""What a chunk costs a proxy while more and more streams are open.

Each stream brings up to 100 chunks a second, all of them 5000 at most: what
grows is the number of connections, and not only the load.
"""

from __future__ import annotations

import time

from bench.accounting import cpu_seconds
from bench.contestants import Contestant
from bench.figures import Curve
from bench.launching import Failed
from bench.lineup import LineUp, everybody
from bench.native import Load

COUNTS = (1, 10, 50, 200, 1000)
RATE, RATE_OF_ALL = 100, 5000  # chunks a second
CHUNK = 200  # bytes
WATCH, QUICK_WATCH = 2, 1  # seconds
ROUNDS = 2


def measure(quick: bool) -> Curve:
    """Watch everybody in turn at each number of streams; the least disturbed round counts."""
    curve = Curve(
        name="streams",
        title="Processor time of a proxy for one chunk of a stream",
        x_label="streams at a time",
        y_label="µs a chunk",
    )
    with everybody() as lineup:
        for streams in COUNTS[::2] if quick else COUNTS:
            costs: dict[str, float] = {}
            for contestant in lineup.rounds(1 if quick else ROUNDS):
                if contestant.pids():
                    cost = _chunk_cost(lineup, contestant, streams, QUICK_WATCH if quick else WATCH)
                    costs[contestant.name] = min(cost, costs.get(contestant.name, cost))
            for name, cost in costs.items():
                curve.series.setdefault(name, []).append((float(streams), cost * 1e6))
    return curve


def _chunk_cost(lineup: LineUp, contestant: Contestant, streams: int, seconds: int) -> float:
    """Seconds of processor time a chunk, while all streams run."""
    rate = min(RATE, RATE_OF_ALL // streams)
    count = rate * (seconds + 1)  # the streams outlast the watching
    with Load("sse", contestant.port, streams=streams, rate=rate, count=count, size=CHUNK) as load:
        load.next_line()
        pids = contestant.pids()
        lineup.upstream.records()
        before = cpu_seconds(pids)
        time.sleep(seconds)
        used, chunks = cpu_seconds(pids) - before, lineup.upstream.records().chunks
        if chunks < 0.8 * streams * rate * seconds:
            raise Failed(f"{contestant.name}: {chunks} chunks in {seconds} s of {streams} streams")
        load.spread()
    return used / chunks
