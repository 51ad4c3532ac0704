"""What a proxy adds."""

from __future__ import annotations

import pytest

from bench.scenarios.latency import added, disturbance


def test_what_is_added_is_told_against_the_same_rounds_direct_way() -> None:
    seen = {"direct": [10.0, 100.0], "nginx": [30.0, 110.0]}

    assert added(seen) == {"nginx": [20.0, 10.0]}


def test_a_round_without_its_direct_way_is_no_round() -> None:
    with pytest.raises(ValueError, match="zip"):
        added({"direct": [10.0], "nginx": [30.0, 110.0]})


def test_a_disturbed_measurement_says_so() -> None:
    assert disturbance(100.0, 200.0) == ()
    assert len(disturbance(100.0, 3_000.0)) == 1
