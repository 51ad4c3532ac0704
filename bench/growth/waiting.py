"""How long one dispatch takes while more and more requests wait, over 50 models."""

from __future__ import annotations

from bench.crowd_process import working
from bench.figures import Curve

MODELS = 50
SIZES = (10, 100, 1000, 10_000, 100_000)
DISPATCHES = 1000
TRIES = 3


def measure(quick: bool) -> Curve:
    """Assemble one crowd after the other; the least disturbed of some tries counts."""
    sizes = SIZES[:-1] if quick else SIZES
    typical, late = [], []
    for size in sizes:
        with working(size, MODELS, MODELS) as worker:
            best = min((worker.pace(DISPATCHES) for _ in range(TRIES)), key=lambda pace: pace.mean)
        typical.append((float(size), best.mean * 1e6))
        late.append((float(size), best.p99 * 1e6))
    return Curve(
        name="dispatch-waiting",
        title=f"One dispatch, {MODELS} models",
        x_label="waiting requests",
        y_label="µs",
        series={"mean": typical, "99 of 100": late},
    )
