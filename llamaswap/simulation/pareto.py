"""Which of several choices are worth having, when less of everything is better."""

from __future__ import annotations

from collections.abc import Sequence

Point = tuple[float, ...]


def pareto_front(points: Sequence[Point]) -> tuple[int, ...]:
    """Return the places of those that no other one beats, ascending.

    One beats another if it is nowhere worse and somewhere better; of equals only the
    first is kept.

    Args:
        points: of one length; less is better.
    """
    front: list[int] = []
    # Whoever beats a point comes before it in this order, and so does somebody of the front who beats it.
    for place in sorted(range(len(points)), key=lambda place: (points[place], place)):
        if not any(_covers(points[kept], points[place]) for kept in front):
            front.append(place)
    return tuple(sorted(front))


def _covers(one: Point, other: Point) -> bool:
    return all(mine <= yours for mine, yours in zip(one, other, strict=True))
