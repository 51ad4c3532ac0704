"""What one small request costs a proxy in processor time, with 32 clients that ask without a pause."""

from __future__ import annotations

from bench.accounting import cpu_seconds
from bench.contestants import DIRECT, NGINX, Contestant
from bench.figures import Figure, Target
from bench.launching import progress
from bench.lineup import everybody
from bench.native import load_json

MICRO = 1e6

CLIENTS = 32
REQUESTS, QUICK_REQUESTS = 10_000, 4_000
WARM_UP = 1_000  # requests, before each contestant's first round

TARGETS = (Target("processor time per request: at most 3 x nginx", NGINX, factor=3),)


def measure(rounds: int, quick: bool) -> Figure:
    """Return microseconds of processor time per request, of all the proxy's threads and processes."""
    requests = QUICK_REQUESTS if quick else REQUESTS
    figure = Figure("cpu_request", "processor time per request, 32 clients", "us", targets=TARGETS)
    with everybody() as line:
        for contestant in line.rounds(rounds):
            if contestant.name == DIRECT:
                continue
            if contestant.name not in figure.samples:
                load_json(contestant.port, clients=CLIENTS, requests=WARM_UP)
            figure.add(contestant.name, MICRO * _cost(contestant, requests))
            progress(f"cpu_request {contestant.name}: {figure.samples[contestant.name][-1]:.1f} us")
    return figure


def _cost(contestant: Contestant, requests: int) -> float:
    """Return seconds per request."""
    pids = contestant.pids()
    before = cpu_seconds(pids)
    load_json(contestant.port, clients=CLIENTS, requests=requests)
    return (cpu_seconds(pids) - before) / requests
