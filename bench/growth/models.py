"""How long one dispatch takes with more and more models, 1000 requests waiting.

Once with all of them loaded side by side, and once with as many as a box has
room for.
"""

from __future__ import annotations

from bench.crowd_process import working
from bench.figures import Curve

WAITING = 1000
COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
FEW = 4
DISPATCHES = 200
TRIES = 3


def measure(quick: bool) -> Curve:
    """Assemble one crowd after the other; the least disturbed of some tries counts."""
    counts = COUNTS[::4] if quick else COUNTS
    return Curve(
        name="dispatch-models",
        title=f"One dispatch, {WAITING} requests waiting",
        x_label="models",
        y_label="µs",
        series={
            "all of them loaded": [(float(count), _mean_us(count, count)) for count in counts],
            f"{FEW} of them loaded": [(float(count), _mean_us(count, min(FEW, count))) for count in counts],
        },
    )


def _mean_us(models: int, loaded: int) -> float:
    with working(WAITING, models, loaded) as worker:
        return min(worker.pace(DISPATCHES).mean for _ in range(TRIES)) * 1e6
