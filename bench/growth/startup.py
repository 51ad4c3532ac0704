"""How long the daemon takes to start with more and more models, until it listens."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from bench.contestants import start_llamaswap
from bench.figures import Curve

COUNTS = (1, 5, 20, 100, 500)
TRIES = 2


def measure(quick: bool) -> Curve:
    """Start it with each configuration; the least disturbed of some tries counts."""
    counts = COUNTS[::2] if quick else COUNTS
    return Curve(
        name="startup-models",
        title="Start of the daemon, until it listens",
        x_label="models",
        y_label="ms",
        series={"llamaswap": [(float(count), _best_ms(count)) for count in counts]},
    )


def _best_ms(models: int) -> float:
    return min(_start(models) for _ in range(TRIES)) * 1e3


def _start(models: int) -> float:
    """Seconds of one start."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = _config(models, folder)
        began = time.monotonic()
        with start_llamaswap(folder, config):
            return time.monotonic() - began


def _config(models: int, folder: Path) -> dict[str, Any]:
    """Models as people write them: a macro, a port, an alias, a limit."""
    model = {
        "cmd": "${serve} --alias ${MODEL_ID} --ctx-size ${context}",
        "macros": {"context": 4096},
        "proxy": "http://127.0.0.1:${PORT}",
        "ttl": 600,
    }
    names = [f"model-{number:03}" for number in range(models)]
    return {
        "macros": {"serve": "/usr/bin/llama-server --host 127.0.0.1 --port ${PORT} --parallel 1"},
        "models": {name: {**model, "aliases": [f"{name}-alias"]} for name in names},
        "routing": {"scheduler": {"use": "serial"}},
        "store": {"path": str(folder / "activity.db")},
    }
