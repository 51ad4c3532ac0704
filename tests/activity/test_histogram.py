from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.activity.histogram import Spread, histogram


@pytest.mark.parametrize(("count", "bins"), [(1, 5), (4, 5), (16, 5), (17, 6), (1000, 11), (10**9, 20)])
def test_the_number_of_bins_grows_with_the_values_within_bounds(count: int, bins: int) -> None:
    assert Spread(count=count, low=1.0, high=2.0).bins == bins


def test_equal_values_share_one_bin() -> None:
    spread = Spread(count=4, low=7.0, high=7.0)
    shown = histogram(spread, {0: 4}, dict.fromkeys(spread.ranks(), 7.0))
    assert shown == {"bins": [4], "min": 7, "max": 7, "binSize": 0, "p50": 7, "p95": 7, "p99": 7}


def test_percentiles_are_interpolated_between_ranks() -> None:
    values = [3.0, 5.0, 10.5, 50.0]
    spread = Spread(count=4, low=3.0, high=50.0)
    shown = histogram(spread, {0: 3, 4: 1}, {rank: values[rank] for rank in spread.ranks()})
    assert shown["bins"] == [3, 0, 0, 0, 1]
    assert shown["binSize"] == pytest.approx(9.4)
    assert shown["p50"] == pytest.approx(7.75)
    assert shown["p95"] == pytest.approx(44.075)
    assert shown["p99"] == pytest.approx(48.815)


@given(st.integers(1, 10**7))
def test_only_few_ranks_are_asked_for_and_all_exist(count: int) -> None:
    ranks = Spread(count=count, low=0.0, high=1.0).ranks()
    assert len(ranks) <= 6
    assert all(0 <= rank < count for rank in ranks)
