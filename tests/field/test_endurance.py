"""A day leaves nothing behind: neither 24 simulated hours, nor four real minutes made to feel like one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.endurance import FILL, endure, growth
from support.field import MIB, Field, stub
from support.field_day import PLAN, Day, Hour
from support.field_ledger import LEDGER
from support.field_scale import Scale
from support.machine import House

pytestmark = pytest.mark.integration


def middle(values: Sequence[int]) -> int:
    """The median."""
    return sorted(values)[len(values) // 2]


@pytest.mark.lasts(seconds=60)
def test_24_simulated_hours_leave_nothing_behind(scale: Scale) -> None:
    pause = 2.0 if scale.soak else 15.0
    with House(PLAN) as house:
        day = Day(house, seed=24, pause=pause)
        seen: list[Hour] = list(day.hours(24))
        house.rig.finish_stopping()

    warm = seen[6:]
    early, late = warm[:6], warm[-6:]
    objects = middle([hour.objects for hour in late]) - middle([hour.objects for hour in early])
    memory = middle([hour.memory for hour in late]) - middle([hour.memory for hour in early])
    assert day.requests > 24 * 3600 / pause * 0.6
    assert objects < 200, f"{objects} objects more, after {[hour.objects for hour in seen]}"
    assert memory < 2 * MIB, f"{memory / MIB:.1f} MiB more, after {[hour.memory for hour in seen]}"
    assert len({hour.descriptors for hour in warm}) == 1
    assert {hour.timers for hour in warm} == {0}, "timers of what is over are gone"
    if scale.soak:
        LEDGER.notes["24 simulated hours, in memory"] = (
            f"{day.requests} requests, {objects:+d} objects, {memory / MIB:+.2f} MiB"
        )


@pytest.mark.lasts(seconds=240)
def test_case_011_pings_that_meet_the_ttl_all_day_slow_nothing_down_and_leave_nothing(
    tmp_path: Path, scale: Scale
) -> None:
    models = {"A": stub(ttl=1), "B": stub("--term-lag 0.2", ttl=1), "C": stub("--load 0.1")}
    seconds = 240.0 if scale.soak else 12.0
    with Field(tmp_path, models, config={"captureBuffer": 1, "metricsMaxInMemory": 500}) as field:
        filled = FILL if scale.soak else 300
        samples, running = endure(field.daemon.port, field.daemon.pid, seconds, filled=filled)
        field.until(lambda: field.daemon.waiting() == 0, "nobody to wait")

        grown = growth(samples, running)
        assert grown.descriptors <= 4
        assert grown.threads <= 1
        assert grown.memory < 2 * MIB
        assert grown.latency < 2.5  # others come and go beside it; `make endurance` measures it alone
        assert grown.most_waiting <= 4
        assert samples[-1].swaps > seconds / 2
        if scale.soak:
            LEDGER.notes["four minutes for a day"] = (
                f"{samples[-1].answered} requests, {samples[-1].swaps} loads, {grown.memory / MIB:+.2f} MiB"
            )
