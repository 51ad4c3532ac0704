"""Measure how long a simulated box takes for a hundred thousand requests, and how much memory.

    python -m bench.simulation [REQUESTS]

The trace is made up while it is played: exponential gaps, log-normal runs, four
models, half of the requests normal and a quarter each interactive and batch.  A
process for each line, so that each has a memory of its own.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from random import Random
from time import perf_counter, process_time
from types import MappingProxyType
from typing import Any

from llamaswap.simulation.arrivals import Arrival
from llamaswap.simulation.engine import simulate
from llamaswap.simulation.scenario import Scenario, box_of

REQUESTS = 100_000
RUN = 8.0  # seconds, the mean
SHARES = (0.4, 0.3, 0.2, 0.1)  # of the models
SPREAD = 1.6487212707  # the mean of a log-normal whose logarithm is a standard normal

CASES: Mapping[str, tuple[str, float, Mapping[str, Any]]] = MappingProxyType(
    {
        "serial, half loaded": ("serial", 0.5, {}),
        "serial, overloaded": ("serial", 1.5, {}),
        "serial with a budget": ("serial", 0.5, {"swap_budget": 15.0}),
        "serial, four at once": ("serial", 1.5, {"width": dict.fromkeys(("m0", "m1", "m2", "m3"), 4)}),
        "fifo, half loaded": ("fifo", 0.5, {}),
        "fifo, overloaded": ("fifo", 1.5, {}),
    }
)


def trace(requests: int, load: float) -> Iterator[Arrival]:
    """Yield so many requests whose runs alone take this share of the time; always the same ones."""
    dice, moment = Random(1), 0.0
    for _ in range(requests):
        moment += dice.expovariate(load / RUN)
        (number,) = dice.choices(range(len(SHARES)), SHARES)
        run = dice.lognormvariate(0.0, 1.0) / SPREAD * RUN
        yield Arrival(at=moment, model=f"m{number}", priority=dice.choice((100, 0, 0, -100)), run=run)


def scenario(case: str) -> Scenario:
    """Return the box of a case."""
    scheduler, _, settings = CASES[case]
    box = box_of((f"m{number}" for number in range(len(SHARES))), **settings)
    return box if scheduler == "serial" else box.baseline()


def measure(case: str, requests: int) -> tuple[float, float, float]:
    """Return the seconds and the CPU seconds that a case takes, and the mebibytes the process had at most."""
    begun, used = perf_counter(), process_time()
    results = simulate(trace(requests, CASES[case][1]), scenario(case))
    if results.waits.count != requests:
        raise SystemExit(f"{case}: {results.waits.count} of {requests} requests were served")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return perf_counter() - begun, process_time() - used, memory


def main(words: list[str]) -> None:
    """Measure each case."""
    requests = int(words[0]) if words else REQUESTS
    print(f"{requests} requests")
    for case in CASES:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            seconds, cpu, mebibytes = pool.submit(measure, case, requests).result()
        print(f"{case:22} {seconds:6.1f} s {cpu:6.1f} s of CPU {mebibytes:5.0f} MiB")


if __name__ == "__main__":
    main(sys.argv[1:])
