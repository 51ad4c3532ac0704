"""The cases that are measured are what they say, and few requests are enough to see it."""

from __future__ import annotations

import pytest

from bench.simulation import CASES, measure, scenario, trace


@pytest.mark.parametrize("case", CASES)
def test_each_case_can_be_played(case: str) -> None:
    seconds, cpu, mebibytes = measure(case, 300)

    assert seconds > 0
    assert cpu > 0
    assert mebibytes > 1
    assert scenario(case).name.startswith(CASES[case][0])


def test_a_trace_is_as_loaded_as_it_says() -> None:
    arrivals = list(trace(20_000, 0.5))

    assert sum(each.run for each in arrivals) / arrivals[-1].at == pytest.approx(0.5, rel=0.05)
    assert arrivals == list(trace(20_000, 0.5))
