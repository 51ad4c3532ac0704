"""What a waiting request costs the daemon in memory.

One job holds the box, and a crowd waits behind it, each client on a connection
of its own that was there before.  The cost is the growth of the daemon's
resident memory between "all are connected" and "all wait", divided by their
number.  The first crowd pays for what the allocator has to fetch from the
kernel, so it is the one that counts; a second one, of the same size, after the
first was served, shows what is kept to be used again.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from bench.accounting import rss_kib
from bench.contestants import MODEL, llamaswap_config, start_llamaswap
from bench.figures import Figure, Target
from bench.waiting import Clients, Gate, clients, gate, until, waiting_now

CROWD, QUICK_CROWD = 2000, 500
MOST_ROUNDS = 3
WARM = 64  # served before anything is measured
SETTLE = 0.5  # seconds for whatever a thread still has to do


def measure(rounds: int, quick: bool) -> Figure:
    """Each round has a daemon of its own: only its first crowd is a first one."""
    first, second = [], []
    for _ in range(1 if quick else min(rounds, MOST_ROUNDS)):
        costs = _one_daemon(QUICK_CROWD if quick else CROWD)
        first.append(costs[0])
        second.append(costs[1])
    return Figure(
        name="waiting_memory",
        title="memory of a waiting request, 300-byte body",
        unit="KiB",
        samples={"llamaswap": first, "llamaswap, again": second},
        targets=(Target("at most 4 KiB", limit=4.0),),
    )


def _one_daemon(size: int) -> tuple[float, float]:
    """KiB a request, for the first and the second crowd."""
    with (
        tempfile.TemporaryDirectory() as folder,
        gate() as upstream,
        start_llamaswap(
            Path(folder), llamaswap_config(Path(folder), upstream.port, scheduler="serial")
        ) as daemon,
    ):
        pid = daemon.pids()[0]
        upstream.opened.set()
        with clients(daemon.port, WARM, MODEL) as warm:
            warm.ask()
            warm.read()
        with clients(daemon.port, 1, MODEL) as job, clients(daemon.port, size, MODEL) as crowd:
            until(lambda: _sockets(pid) > size, "the crowd to be connected")
            return _cost(pid, upstream, job, crowd), _cost(pid, upstream, job, crowd)


def _cost(pid: int, upstream: Gate, job: Clients, crowd: Clients) -> float:
    """Let everybody wait, and then be served; KiB a request."""
    upstream.opened.clear()
    job.ask()
    until(lambda: upstream.held, "the job to hold the box")
    time.sleep(SETTLE)
    before = rss_kib(pid)
    crowd.ask()
    until(lambda: waiting_now(crowd.port) == crowd.size, "the crowd to wait")
    time.sleep(SETTLE)
    after = rss_kib(pid)
    upstream.opened.set()
    job.read()
    crowd.read()
    return (after - before) / crowd.size


def _sockets(pid: int) -> int:
    """How many descriptors a process has open."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
