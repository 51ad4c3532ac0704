"""What a chunk of a stream costs a proxy in processor time: 50 streams, 10 000 chunks a second in all.

The streams run for longer than is measured: opening and closing them is not
counted, and a client has read every chunk of them in the end.
"""

from __future__ import annotations

import time

from bench.accounting import cpu_seconds
from bench.contestants import DIRECT, NGINX, Contestant
from bench.figures import Figure, Target
from bench.launching import Failed, progress
from bench.lineup import LineUp, everybody
from bench.native import Load

MICRO = 1e6

STREAMS = 50
RATE = 200  # chunks a second, of each stream
SETTLING = 0.3  # seconds between the first chunk of the last stream and the first one that counts
WINDOW, QUICK_WINDOW = 2.0, 1.0  # seconds that count
REST = 0.4  # seconds that the streams go on

LEAST = 0.9
"""Of the chunks that are due: a contestant that passes on fewer is measured doing something else."""

TARGETS = (Target("processor time per chunk: at most 1.4 x nginx", NGINX, factor=1.4),)


def measure(rounds: int, quick: bool) -> Figure:
    """Return microseconds of processor time per chunk, of all the proxy's threads and processes."""
    window = QUICK_WINDOW if quick else WINDOW
    figure = Figure("cpu_chunk", "processor time per chunk, 10 000 chunks/s", "us", targets=TARGETS)
    with everybody() as line:
        for contestant in line.rounds(rounds):
            if contestant.name == DIRECT:
                continue
            figure.add(contestant.name, MICRO * _cost(line, contestant, window))
            progress(f"cpu_chunk {contestant.name}: {figure.samples[contestant.name][-1]:.1f} us")
    return figure


def _cost(line: LineUp, contestant: Contestant, window: float) -> float:
    """Return seconds per chunk."""
    pids = contestant.pids()
    count = round(RATE * (SETTLING + window + REST))
    with Load("sse", contestant.port, streams=STREAMS, rate=RATE, count=count) as load:
        load.next_line()
        time.sleep(SETTLING)
        line.upstream.records()
        used, began = cpu_seconds(pids), time.monotonic()
        time.sleep(window)
        used, seconds = cpu_seconds(pids) - used, time.monotonic() - began
        chunks = line.upstream.records().chunks
        load.spread()
    if chunks < LEAST * STREAMS * RATE * seconds:
        raise Failed(f"cpu_chunk: {contestant.name} lets {chunks / seconds:.0f} chunks a second through")
    return used / chunks
