"""Arrivals in columns are as good as a list of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llamaswap.simulation.arrivals import Arrival
from llamaswap.simulation.packed import PackedArrivals

SECONDS = st.floats(0, 1e9)
ARRIVALS = st.builds(
    Arrival,
    at=st.floats(-1e9, 1e9),
    model=st.sampled_from(["a", "b", "c"]),
    priority=st.integers(-(2**63), 2**63 - 1),
    run=SECONDS,
    user=st.sampled_from(["", "ada", "bob"]),
    cancel_after=st.none() | SECONDS,
)


@given(st.lists(ARRIVALS, max_size=20))
def test_it_is_the_list_sorted_by_time(arrivals: list[Arrival]) -> None:
    packed = PackedArrivals()
    for arrival in arrivals:
        packed.add(arrival, arrival.at)
    packed.sort()

    expected = sorted(arrivals, key=lambda arrival: arrival.at)

    assert list(packed) == expected
    assert list(packed) == expected  # twice: it is walked for each setting
    assert (len(packed), packed[:3]) == (len(expected), expected[:3])
    assert [packed[place] for place in range(len(packed))] == expected
    assert packed.models == tuple(sorted({arrival.model for arrival in arrivals}))


def test_an_arrival_may_be_moved_in_time() -> None:
    packed = PackedArrivals()
    packed.add(Arrival(at=100, model="a", priority=2**80, run=1), 5)

    assert (packed[0].at, packed[0].priority) == (5.0, 2**63 - 1)
