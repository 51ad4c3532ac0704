"""How long a server goes on for nobody: from a client's leaving to the end of the upstream's connection.

The client closes its connection in the middle of a stream, 5 ms after a chunk
and 15 ms before the next: a proxy that only notices when it writes is late.
"""

from __future__ import annotations

import statistics
import time

from bench.contestants import DIRECT, HAPROXY, Contestant
from bench.figures import Figure, Target
from bench.launching import Failed, progress
from bench.lineup import LineUp, everybody
from bench.native import load_abort

MICRO = 1e6

RATE = 50  # chunks a second
STREAMS, QUICK_STREAMS = 20, 10
WARM_UP = 3  # streams, before each contestant's first round
PATIENCE = 5.0  # seconds after the last stream was left

TARGETS = (Target("client's abort to upstream closed: at most 2 x haproxy", HAPROXY, factor=2),)


def measure(rounds: int, quick: bool) -> Figure:
    """Return the median time in microseconds; without a proxy, it is what the kernel takes."""
    streams = QUICK_STREAMS if quick else STREAMS
    figure = Figure("abort", "client's abort to upstream closed, median", "us", targets=TARGETS)
    with everybody() as line:
        for contestant in line.rounds(rounds):
            if contestant.name not in figure.samples:
                _times(line, contestant, WARM_UP)
            figure.add(contestant.name, MICRO * statistics.median(_times(line, contestant, streams)))
            progress(f"abort {contestant.name}: {figure.samples[contestant.name][-1]:.0f} us")
    return figure


def _times(line: LineUp, contestant: Contestant, streams: int) -> list[float]:
    """Return seconds, one for each stream.

    Raises:
        Failed: the upstream was left running.
    """
    line.upstream.records()
    left = load_abort(contestant.port, requests=streams, rate=RATE)
    noticed: dict[int, float] = {}
    until = time.monotonic() + PATIENCE
    while len(noticed) < streams and time.monotonic() < until:
        noticed |= line.upstream.records().aborts
        time.sleep(0.01)
    if noticed.keys() != left.keys():
        raise Failed(f"abort: {contestant.name} let {len(left) - len(noticed)} of {streams} streams run on")
    if contestant.name != DIRECT and any(noticed[one] < left[one] for one in left):
        raise Failed(f"abort: {contestant.name} ended a stream before it was left")
    return [noticed[one] - left[one] for one in left]
