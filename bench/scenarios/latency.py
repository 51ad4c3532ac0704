"""What a proxy adds to one small request: a 300-byte chat in, 300 bytes of JSON out, one client.

The client keeps its connection and asks again as soon as it is answered.
What is added is a contestant's percentile less the same percentile without a
proxy in the same round.  Rounds are short and many: whatever else the machine
does for a moment spoils the slowest percent of a few of them only.
"""

from __future__ import annotations

import statistics

from bench.contestants import DIRECT, NGINX
from bench.figures import Figure, Target
from bench.launching import progress
from bench.lineup import everybody
from bench.native import Spread, load_json

MICRO = 1e6

REQUESTS, QUICK_REQUESTS = 2_000, 1_000
DISTURBED = 10  # times the median; on an idle machine nginx's slowest percent takes twice as long
SHORT_ROUNDS = 3  # for each one that is asked for
WARM_UP = 1_000  # requests, before each contestant's first round


def measure(rounds: int, quick: bool) -> list[Figure]:
    """Return four figures: what is added, and as a check the latencies themselves."""
    requests = QUICK_REQUESTS if quick else REQUESTS
    seen: dict[str, list[Spread]] = {}
    with everybody() as line:
        for contestant in line.rounds(SHORT_ROUNDS * rounds):
            port = contestant.port
            if contestant.name not in seen:
                load_json(port, requests=WARM_UP)
            spread = load_json(port, requests=requests)
            seen.setdefault(contestant.name, []).append(spread)
            progress(f"latency {contestant.name}: {MICRO * spread.p50:.1f} / {MICRO * spread.p99:.1f} us")
    p50 = {name: [MICRO * spread.p50 for spread in spreads] for name, spreads in seen.items()}
    p99 = {name: [MICRO * spread.p99 for spread in spreads] for name, spreads in seen.items()}
    slowest = Figure(
        "added_latency_p99", "added latency, 99th percentile", "us", added(p99), _target("p99", 3)
    )
    slowest.notes = disturbance(statistics.median(p50[NGINX]), statistics.median(p99[NGINX]))
    return [
        Figure("added_latency_p50", "added latency, median", "us", added(p50), _target("median", 2)),
        slowest,
        Figure("latency_p50", "latency, median", "us", p50, reference=DIRECT),
        Figure("latency_p99", "latency, 99th percentile", "us", p99, reference=DIRECT),
    ]


def added(latencies: dict[str, list[float]]) -> dict[str, list[float]]:
    """Return what each contestant adds to the direct way, round by round."""
    base = latencies[DIRECT]
    return {
        name: [value - zero for value, zero in zip(values, base, strict=True)]
        for name, values in latencies.items()
        if name != DIRECT
    }


def disturbance(p50: float, p99: float) -> tuple[str, ...]:
    """Return what is to be said of a reference whose slowest percent is far from its median."""
    if p99 <= DISTURBED * p50:
        return ()
    return ("something else had the proxies' processor for milliseconds: this says little, ask again",)


def _target(which: str, factor: float) -> tuple[Target, ...]:
    return (Target(f"added latency, {which}: at most {factor:g} x nginx", NGINX, factor=factor),)
