"""The demonstration of priorities: it checks itself, against a real model."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support.real_daemon_demo import REPOSITORY, demo_environ

pytestmark = pytest.mark.integration


def test_order_rows_and_counters_are_what_the_formula_says() -> None:
    script = REPOSITORY / "bench" / "priorities.py"
    ended = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, **demo_environ()},
        timeout=150,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "All 15 picks, scores, rows and counters are what the formula says." in ended.stdout
    assert "aging: else #" in ended.stdout
    assert "swap affinity: else #" in ended.stdout
