"""What a daemon costs that has nothing to do: memory and wake-ups.

Measured after its start and one answered request.  A wake-up is a voluntary
context switch: a thread that slept, ran, and went to sleep again.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from bench.accounting import rss_kib, voluntary_switches
from bench.contestants import LLAMASWAP, MODEL, Contestant, llamaswap_config, peers, start_llamaswap
from bench.figures import Figure, Target
from bench.waiting import clients, gate

SETTLE = 3.0  # seconds after the request, until what it left behind is done
WATCH, QUICK_WATCH = 20.0, 6.0  # seconds
MOST_ROUNDS = 2


def measure(rounds: int, quick: bool) -> list[Figure]:
    """Watch a fresh daemon each round, and peers beside it."""
    memory = Figure(
        name="idle_memory",
        title="resident memory of an idle daemon",
        unit="MiB",
        targets=(Target("at most 60 MiB", limit=60.0),),
        notes=("the keeper is the small process that ends models when the daemon was killed",),
    )
    wakeups = Figure(
        name="idle_wakeups",
        title="wake-ups of an idle daemon",
        unit="a second",
        targets=(Target("at most 2 a second, all threads together", limit=2.0),),
    )
    for _ in range(1 if quick else min(rounds, MOST_ROUNDS)):
        _one_round(memory, wakeups, QUICK_WATCH if quick else WATCH)
    return [memory, wakeups]


def _one_round(memory: Figure, wakeups: Figure, seconds: float) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        gate() as upstream,
        start_llamaswap(Path(folder), llamaswap_config(Path(folder), upstream.port)) as daemon,
    ):
        upstream.opened.set()
        with clients(daemon.port, 1, MODEL) as client:
            client.ask()
            client.read()
        time.sleep(SETTLE)
        processes = _processes([daemon, *peers()])
        woken = _woken(processes, seconds)
        for name, pid in processes.items():
            memory.add(name, rss_kib(pid) / 1024)
            wakeups.add(name, sum(woken[name].values()))
        wakeups.add(f"{LLAMASWAP}, main", woken[LLAMASWAP][daemon.pids()[0]])


def _processes(contestants: list[Contestant]) -> Mapping[str, int]:
    """Every process of interest, by what it is called."""
    found = {}
    for contestant in contestants:
        main, *others = contestant.pids()
        found[contestant.name] = main
        if contestant.name == LLAMASWAP:
            found.update(zip(["its keeper"], others, strict=False))
    return found


def _woken(processes: Mapping[str, int], seconds: float) -> dict[str, dict[int, float]]:
    """How often each thread of each process wakes up, a second."""
    before, began = {name: voluntary_switches(pid) for name, pid in processes.items()}, time.monotonic()
    time.sleep(seconds)
    after, took = {name: voluntary_switches(pid) for name, pid in processes.items()}, time.monotonic() - began
    return {
        name: {thread: (count - before[name].get(thread, 0)) / took for thread, count in threads.items()}
        for name, threads in after.items()
    }
