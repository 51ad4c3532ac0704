"""The eviction rules of a matrix as they are written down: every family spelt out, nothing saved.

The planner is held against this; it also makes planners from short texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from llamaswap.config.matrix_sets import Either, Expression, Model, Reference, in_order, parse_set
from llamaswap.config.model import MatrixConfig
from llamaswap.scheduling.matrix import MatrixPlanner

Family = frozenset[str]


def matrix(sets: Mapping[str, str], **costs: int) -> MatrixConfig:
    """A matrix whose sets are considered in the given order."""
    return MatrixConfig(sets=tuple(sets.items()), costs=costs)


def evicted(target: str, running: str, sets: Mapping[str, str], **costs: int) -> str:
    """What stops, as one text; models are single letters."""
    return "".join(sorted(MatrixPlanner(matrix(sets, **costs)).make_room(target, frozenset(running))))


def evicted_by_the_book(target: str, running: Family, matrix: MatrixConfig) -> Family:
    """The same question, answered by writing everything out."""
    if target in running:
        return frozenset()
    parsed = {name: parse_set(text) for name, text in matrix.sets}
    families: dict[str, list[Family]] = {}
    for name in in_order(parsed):
        families[name] = _families(parsed[name], running | {target}, families)
    best: tuple[int, Family] | None = None
    for family in (one for name in families for one in families[name] if target in one):
        cost = sum(matrix.costs.get(model, 1) for model in running - family)
        if best is None or cost < best[0]:
            best = cost, family
    return running - (best[1] if best else frozenset())


def _families(node: Expression, asked: Family, known: Mapping[str, list[Family]]) -> list[Family]:
    if isinstance(node, Model):
        return [asked & {node.name}]
    if isinstance(node, Reference):
        return known[node.name]
    parts = [_families(part, asked, known) for part in node.parts]
    if isinstance(node, Either):
        return _inserted(family for part in parts for family in part)
    unions: list[Family] = [frozenset()]
    for part in parts:
        unions = _inserted(one | other for one in unions for other in part)
    return unions


def _inserted(families: Iterable[Family]) -> list[Family]:
    present: list[Family] = []
    for family in families:
        if not any(family <= one for one in present):
            present = [*(one for one in present if not one < family), family]
    return present
