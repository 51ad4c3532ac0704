"""The families of models that an expression allows, as far as somebody asks.

An expression stands for an ordered list of families: a model for one, `|` for those of
its parts one after the other, `&` for every union with one of each part, the first
part's outermost.  Seen from a question - a target, and what runs - only the models in
it count; of these smaller families, those that are part of another go, and each of the
rest stands where it came first.

The list is only written out where the parts of an `&` share models of the question.
Parts that share none are independent: the best union is the union of their best, and
the first of the best ones is that of their firsts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from llamaswap.config.matrix_sets import Both, Expression, Model, Reference

MOST_FAMILIES = 2048
"""Written out at once; of more, those worth most are kept.  It takes dozens of running models."""

FEW_FAMILIES = 64
"""So many are not worth the trouble of finding out which can't win."""

Bits: TypeAlias = int
"""A set of models, a bit for each; as a family, those that may be loaded together."""


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """One family: all these models."""

    models: Bits


@dataclass(frozen=True, slots=True, eq=False)
class OneOf:
    """`|`."""

    parts: tuple[Shape, ...]
    models: Bits  # of all parts


@dataclass(frozen=True, slots=True, eq=False)
class EachOf:
    """`&`."""

    parts: tuple[Shape, ...]
    models: Bits  # of all parts


Shape: TypeAlias = Together | OneOf | EachOf
"""An expression ready for questions.  A set is one object in all expressions that refer to it."""


def compile_shape(expression: Expression, bits: Mapping[str, Bits], references: Mapping[str, Shape]) -> Shape:
    """Turn an expression into a shape.

    Args:
        expression: as parsed.
        bits: the bit of each variable and model id.
        references: the shapes of the sets that it refers to.
    """
    if isinstance(expression, Model):
        return Together(bits[expression.name])
    if isinstance(expression, Reference):
        return references[expression.name]
    parts = tuple(compile_shape(part, bits, references) for part in expression.parts)
    models = _union(part.models for part in parts)
    if not isinstance(expression, Both):
        return OneOf(parts, models)
    return Together(models) if all(isinstance(part, Together) for part in parts) else EachOf(parts, models)


class Projection:
    """Shapes as one question sees them.  Lives for that question, and remembers meanwhile.

    Args:
        target: the model that is to be loaded; it is worth more than everything else.
        costs: what it costs to unload each running model, from 1.
    """

    def __init__(self, target: Bits, costs: Mapping[Bits, int]) -> None:
        self._target = target
        self._asked = target | _union(costs)
        self._cheap = _union(model for model, cost in costs.items() if cost == 1)
        self._dear = {model: cost for model, cost in costs.items() if cost != 1}
        self._dear[target] = 1 + sum(costs.values())
        self._best: dict[Shape, Bits] = {}
        self._families: dict[Shape, tuple[Bits, ...]] = {}

    def worth(self, family: Bits) -> int:
        """What it would cost not to have these models."""
        worth = (family & self._cheap).bit_count()
        for model, cost in self._dear.items():
            if family & model:
                worth += cost
        return worth

    def best(self, shape: Shape) -> Bits:
        """The family worth most, the first of equal ones; it has the target if any has."""
        if isinstance(shape, Together):
            return shape.models & self._asked
        known = self._best.get(shape)
        if known is None:
            known = self._first_choice(shape) if isinstance(shape, OneOf) else self._best_union(shape)
            self._best[shape] = known
        return known

    def _first_choice(self, shape: OneOf) -> Bits:
        needed = shape.models & self._target or self._asked
        chosen = dict.fromkeys(self.best(part) for part in shape.parts if part.models & needed)
        return max(chosen, key=self.worth, default=0)

    def _best_union(self, shape: EachOf) -> Bits:
        best = 0
        for parts in self._entangled(shape.parts):
            if len(parts) == 1:
                best |= self.best(parts[0])
            else:
                best |= self._best_of_product([self.families(part) for part in parts])
        return best

    def _best_of_product(self, lists: Sequence[tuple[Bits, ...]]) -> Bits:
        """What `_unions` would hold of most worth first, without what can't come to that."""
        tops = [max(map(self.worth, families)) for families in lists]
        least = self.worth(self._greedy(lists))
        unions: tuple[Bits, ...] = (0,)
        for place, families in enumerate(lists[:-1], 1):
            found = (one | other for one in unions for other in families)
            unions = self._largest(found, least - sum(tops[place:]))
        best, most = 0, -1
        for one in unions:
            if self.worth(one) + tops[-1] > most:
                union = max((one | other for other in lists[-1]), key=self.worth)
                if self.worth(union) > most:
                    best, most = union, self.worth(union)
        return best

    def _greedy(self, lists: Sequence[tuple[Bits, ...]]) -> Bits:
        """A good union, found by taking the best addition each time."""
        union = 0
        for families in lists:
            union = max((union | family for family in families), key=self.worth)
        return union

    def _entangled(self, parts: Sequence[Shape]) -> Iterable[Sequence[Shape]]:
        """The parts in groups that share no models of the question, in order inside each."""
        groups: list[tuple[Bits, list[int]]] = []
        for place, part in enumerate(parts):
            models = part.models & self._asked
            if models:
                sharing = [group for group in groups if group[0] & models]
                joined = _union(group[0] for group in sharing) | models
                places = [one for group in sharing for one in group[1]]
                groups = [group for group in groups if not group[0] & models]
                groups.append((joined, [*places, place]))
        return ([parts[place] for place in sorted(places)] for _, places in groups)

    def families(self, shape: Shape) -> tuple[Bits, ...]:
        """All families, written out; those of its parts first, however deep sets refer to sets."""
        if isinstance(shape, Together):
            return (shape.models & self._asked,)
        waiting: list[OneOf | EachOf] = [shape]
        while waiting:
            unknown = [
                part
                for part in self._asked_of(waiting[-1])
                if not isinstance(part, Together) and part not in self._families
            ]
            if unknown:
                waiting += unknown
            else:
                done = waiting.pop()
                self._families[done] = self._written_out(done)
        return self._families[shape]

    def _written_out(self, shape: OneOf | EachOf) -> tuple[Bits, ...]:
        lists = [
            (part.models & self._asked,) if isinstance(part, Together) else self._families[part]
            for part in self._asked_of(shape)
        ]
        if isinstance(shape, EachOf):
            return self._unions(lists)
        return self._largest(family for families in lists for family in families) or (0,)

    def _asked_of(self, shape: OneOf | EachOf) -> Iterable[Shape]:
        """Its parts that the question is about; the others change nothing."""
        return (part for part in shape.parts if part.models & self._asked)

    def _unions(self, lists: Sequence[tuple[Bits, ...]]) -> tuple[Bits, ...]:
        unions: tuple[Bits, ...] = (0,)
        for families in lists:
            unions = self._largest(one | other for one in unions for other in families)
        return unions

    def _largest(self, families: Iterable[Bits], floor: int = 0) -> tuple[Bits, ...]:
        """Those that are no part of another, in order of their first appearance.

        Args:
            families: with repetitions.
            floor: those worth less may be left out; their parts are worth less, too.
        """
        found = dict.fromkeys(families)
        if len(found) > FEW_FAMILIES and floor > 0:
            found = {family: None for family in found if self.worth(family) >= floor}
        if len(found) > MOST_FAMILIES:
            kept = frozenset(sorted(found, key=self.worth, reverse=True)[:MOST_FAMILIES])
            found = {family: None for family in found if family in kept}
        largest: list[Bits] = []
        for _, equals in groupby(sorted(found, key=int.bit_count, reverse=True), key=int.bit_count):
            largest += [family for family in equals if not any(family & other == family for other in largest)]
        kept = frozenset(largest)
        return tuple(family for family in found if family in kept)


def _union(sets: Iterable[Bits]) -> Bits:
    union = 0
    for one in sets:
        union |= one
    return union
