"""How long a model's server stands idle between two jobs when it gets one at a time and others wait.

Seen by the server: from the end of an answer to the head of the next request.
Four clients ask again as soon as they are answered, so that three always
wait.  The daemon has its serial scheduler, haproxy `maxconn 1`; nginx can't
hold a request back.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from bench.contestants import HAPROXY, Contestant, llamaswap_config, start_haproxy, start_llamaswap
from bench.figures import Figure, Target
from bench.launching import Failed, progress
from bench.lineup import LineUp, upstream_and_folder
from bench.native import load_json

MICRO = 1e6

CLIENTS = 4
WARM_UP = 200  # requests, before each contestant's first round
REQUESTS, QUICK_REQUESTS = 2_000, 1_000
WORKING, QUICK_WORKING = 200, 100  # requests, where each takes `WORK_US`
WORK_US = 5_000

TARGETS = (Target("gap between two serial jobs: at most 1.5 x haproxy's", HAPROXY, factor=1.5),)


def measure(rounds: int, quick: bool) -> list[Figure]:
    """Return the median gap, for jobs that take no time and for jobs of 5 ms."""
    at_once = Figure("serial_gap", "gap between two serial jobs", "us", targets=TARGETS)
    working = Figure("serial_gap_5ms", "gap between two serial jobs of 5 ms", "us", reference=HAPROXY)
    with _one_at_a_time() as line:
        for contestant in line.rounds(rounds):
            if contestant.name not in at_once.samples:
                load_json(contestant.port, clients=CLIENTS, requests=WARM_UP)
            gap = _gap(line, contestant, QUICK_REQUESTS if quick else REQUESTS, 0)
            at_once.add(contestant.name, MICRO * gap)
            gap = _gap(line, contestant, QUICK_WORKING if quick else WORKING, WORK_US)
            working.add(contestant.name, MICRO * gap)
            said = f"{at_once.samples[contestant.name][-1]:.1f} us, after 5 ms {MICRO * gap:.1f} us"
            progress(f"serial_gap {contestant.name}: {said}")
    return [at_once, working]


@contextmanager
def _one_at_a_time() -> Iterator[LineUp]:
    with upstream_and_folder() as (upstream, folder), ExitStack() as stack:
        config = llamaswap_config(folder, upstream.port, scheduler="serial")
        haproxy = stack.enter_context(start_haproxy(folder, upstream.port, server="maxconn 1"))
        ours = stack.enter_context(start_llamaswap(folder, config))
        yield LineUp(upstream, [haproxy, ours])


def _gap(line: LineUp, contestant: Contestant, requests: int, work_us: int) -> float:
    """Return the median gap in seconds."""
    line.upstream.records()
    load_json(contestant.port, clients=CLIENTS, requests=requests, delay_us=work_us)
    seen = line.upstream.records()
    if seen.overlaps or len(seen.gaps) != requests - 1:
        raise Failed(f"serial_gap: {contestant.name} sent {seen.overlaps} of {requests} while another ran")
    return statistics.median(seen.gaps)
