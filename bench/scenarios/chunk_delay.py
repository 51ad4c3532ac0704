"""How much later a chunk of a stream comes for a proxy's sake: one stream, 200 chunks a second.

Each chunk carries the moment at which it was written, on the clock that the
client reads it by.  What is added is a contestant's percentile less the same
percentile without a proxy in the same round.
"""

from __future__ import annotations

from bench.contestants import DIRECT, NGINX
from bench.figures import Figure, Target
from bench.launching import progress
from bench.lineup import everybody
from bench.native import Spread, load_sse
from bench.scenarios.latency import added

MICRO = 1e6

RATE = 200  # chunks a second
CHUNKS, QUICK_CHUNKS = 400, 200
WARM_UP = 20  # chunks, before each contestant's first round

TARGETS = (Target("delay added to a chunk: at most 1.5 x nginx", NGINX, factor=1.5),)


def measure(rounds: int, quick: bool) -> list[Figure]:
    """Return what is added to the median chunk and to the slowest percent, and the delays themselves."""
    chunks = QUICK_CHUNKS if quick else CHUNKS
    seen: dict[str, list[Spread]] = {}
    with everybody() as line:
        for contestant in line.rounds(rounds):
            if contestant.name not in seen:
                load_sse(contestant.port, rate=RATE, count=WARM_UP)
            spread = load_sse(contestant.port, rate=RATE, count=chunks)
            seen.setdefault(contestant.name, []).append(spread)
            progress(f"chunk_delay {contestant.name}: {MICRO * spread.p50:.1f} / {MICRO * spread.p99:.1f} us")
    p50 = {name: [MICRO * spread.p50 for spread in spreads] for name, spreads in seen.items()}
    p99 = {name: [MICRO * spread.p99 for spread in spreads] for name, spreads in seen.items()}
    return [
        Figure("chunk_delay", "delay added to a chunk, median", "us", added(p50), TARGETS),
        Figure("chunk_delay_p99", "delay added to a chunk, 99th pct", "us", added(p99), reference=NGINX),
        Figure("chunk_delay_whole", "delay of a chunk, median", "us", p50, reference=DIRECT),
    ]
