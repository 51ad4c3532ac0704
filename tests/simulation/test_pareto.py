"""What is worth having when less is better."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llamaswap.simulation.pareto import Point, pareto_front


def beats(one: Point, other: Point) -> bool:
    return one != other and all(mine <= yours for mine, yours in zip(one, other, strict=True))


points = st.integers(1, 4).flatmap(
    lambda size: st.lists(st.tuples(*[st.integers(0, 4).map(float)] * size), max_size=30)
)


@given(points)
def test_the_front_is_whom_nobody_beats_and_of_equals_the_first(choices: list[Point]) -> None:
    by_force = tuple(
        place
        for place, choice in enumerate(choices)
        if not any(beats(other, choice) for other in choices) and choice not in choices[:place]
    )

    assert pareto_front(choices) == by_force


def test_two_that_are_each_better_in_something_are_both_kept() -> None:
    assert pareto_front([(1.0, 9.0), (2.0, 9.5), (3.0, 1.0)]) == (0, 2)
