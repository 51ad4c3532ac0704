"""One dispatch with 100 000 waiting, against one with 100 waiting.

In process: the real dispatcher, scheduler, counters and log lines, each crowd
in a process of its own, spread over 50 resident models.  A value is the mean
of a round's dispatches, the garbage collector's pauses included.
"""

from __future__ import annotations

from bench.crowd_process import working
from bench.figures import Figure, Target

MODELS = 50
FEW, MANY, MANY_QUICK = 100, 100_000, 20_000
DISPATCHES = 1000  # of each crowd, a round


def measure(rounds: int, quick: bool) -> Figure:
    """Let both crowds dispatch in turn; the smaller one goes first in every other round."""
    many = MANY_QUICK if quick else MANY
    few_name, many_name = _name(FEW), _name(many)
    times: dict[str, list[float]] = {few_name: [], many_name: []}
    with working(FEW, MODELS, MODELS) as few, working(many, MODELS, MODELS) as crowd:
        workers = [(few_name, few), (many_name, crowd)]
        for turn in range(rounds):
            for name, worker in workers if turn % 2 else reversed(workers):
                times[name].append(worker.pace(DISPATCHES).mean * 1e6)
    target = Target(f"at most 3 x one with {FEW} waiting", reference=few_name, factor=3.0, subject=many_name)
    return Figure("dispatch", f"one dispatch over {MODELS} models", "us", times, (target,))


def _name(waiting: int) -> str:
    return f"{waiting:,} waiting".replace(",", " ")
