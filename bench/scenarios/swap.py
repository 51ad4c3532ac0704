"""From one model to another: stop, start, ready, first token.

A real llama-server with a model of 135 million parameters, twice.  Against a
script that has nothing else to do, in turn, on both processors: loading a model
is what takes the time.  The parts of the daemon's swaps are its own words.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from bench.contestants import start_llamaswap
from bench.figures import Figure, Target
from bench.launching import free_port
from bench.swapping import MODELS, Swap, Swapper, scripting, swapping_config

LEAST, QUICK = 20, 5  # swaps of each

PARTS = {
    "stop": "swap: until the old server has ended",
    "load": "swap: from there to ready",
    "answer": "swap: from ready to the first token",
    "total": "swap, to the first token",
}


def measure(rounds: int, quick: bool) -> list[Figure]:
    """Swap in turn; the first of each, which stops nothing, does not count."""
    swaps: dict[str, list[Swap]] = {"script": [], "llamaswap": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            scripting(free_port(), folder / "script.log") as script,
            start_llamaswap(folder, swapping_config(folder / "activity.db")) as daemon,
        ):
            _spread(daemon.pids()[0])
            swapper = Swapper(daemon.port)
            for turn in range((QUICK if quick else max(LEAST, rounds)) + 1):
                model = MODELS[turn % 2]
                pairs = [("script", script.swap), ("llamaswap", swapper.swap)]
                for who, swap in pairs if turn % 2 else reversed(pairs):
                    swaps[who].append(swap(model))
    return [_figure(part, {who: done[1:] for who, done in swaps.items()}) for part in PARTS]


def _figure(part: str, swaps: dict[str, list[Swap]]) -> Figure:
    """One part of all swaps, in milliseconds; only the whole has a target."""
    target = Target("at most 1.05 x the script", reference="script", factor=1.05)
    return Figure(
        name="swap" if part == "total" else f"swap_{part}",
        title=PARTS[part],
        unit="ms",
        samples={who: [getattr(swap, part) * 1e3 for swap in done] for who, done in swaps.items()},
        targets=(target,) if part == "total" else (),
        reference="script",
    )


def _spread(pid: int) -> None:
    """Let a daemon use every processor that we may use: its children do as it does."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), os.sched_getaffinity(0))
