"""What the C programs say, read; what they do is looked at in `tests/integration`."""

from __future__ import annotations

import pytest

from bench.native import spread_of


def test_times_are_read_as_seconds() -> None:
    said = {"count": 3, "seconds": 0.5, "reconnects": 0}
    said |= {f"{name}_ns": 1_500_000_000 for name in ("low", "p50", "p90", "p99", "high", "mean")}

    spread = spread_of(said)

    assert (spread.count, spread.seconds) == (3, 0.5)
    assert spread.p50 == pytest.approx(1.5)
