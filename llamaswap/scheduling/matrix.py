"""What must stop before a model may run, by the sets of a matrix.

A set is an expression over models.  It allows families of models, and every part of
one.  Loading a target keeps the allowed part of what runs that costs least to leave;
of equally cheap ones the first counts, in the order of the sets and inside each.

Knows the order of the sets; `projections` knows what a single expression allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from llamaswap.config.matrix_sets import Expression, Reference, atoms, in_order, parse_set
from llamaswap.config.model import MatrixConfig
from llamaswap.scheduling.projections import Bits, Projection, Shape, compile_shape

MOST_ANSWERS = 1024
"""Answers that are remembered, the ones asked for last."""


class MatrixPlanner:
    """The eviction question for configurations with a matrix.

    Args:
        matrix: with at least one set; its expressions are sound, as the loader leaves them.
    """

    def __init__(self, matrix: MatrixConfig) -> None:
        parsed = {name: parse_set(text) for name, text in matrix.sets}
        self._bits = _number_models(parsed, matrix.vars)
        self._costs = matrix.costs
        self._shapes: dict[str, Shape] = {}
        for name in in_order(parsed):
            self._shapes[name] = compile_shape(parsed[name], self._bit_of(matrix.vars), self._shapes)
        self._referenced = frozenset(
            atom.name for one in parsed.values() for atom in atoms(one) if isinstance(atom, Reference)
        )
        self._answer = lru_cache(MOST_ANSWERS)(self._decide)

    def make_room(self, target: str, running: frozenset[str]) -> frozenset[str]:
        """Return the models of `running` that must stop before `target` may run."""
        return self._answer(target, running)

    def sets_with(self, model: str) -> tuple[str, ...]:
        """The names of the sets that allow this model, in the order in which they are considered."""
        bit = self._bits.get(model, 0)
        return tuple(name for name, shape in self._shapes.items() if shape.models & bit)

    def _decide(self, target: str, running: frozenset[str]) -> frozenset[str]:
        if target in running:
            return frozenset()
        kept = self._kept(target, running)
        return frozenset(model for model in running if not self._bits.get(model, 0) & kept)

    def _kept(self, target: str, running: frozenset[str]) -> Bits:
        """The cheapest family with the target in it; no family at all if it is in no set."""
        wanted = self._bits.get(target, 0)
        costs = {self._bits[model]: self._costs.get(model, 1) for model in running if model in self._bits}
        projection = Projection(wanted, costs)
        best, most = 0, -1
        for name, shape in self._shapes.items():
            if not shape.models & wanted and name not in self._referenced:
                continue
            family = projection.best(shape)
            if shape.models & wanted and projection.worth(family) > most:
                best, most = family, projection.worth(family)
        return best

    def _bit_of(self, variables: Mapping[str, str]) -> Mapping[str, Bits]:
        named = {name: self._bits[model] for name, model in variables.items() if model in self._bits}
        return {**self._bits, **named}


def _number_models(sets: Mapping[str, Expression], variables: Mapping[str, str]) -> dict[str, Bits]:
    """One bit for each model that a set mentions."""
    names = (atom.name for one in sets.values() for atom in atoms(one) if not isinstance(atom, Reference))
    models = dict.fromkeys(variables.get(name, name) for name in names)
    return {model: 1 << place for place, model in enumerate(models)}
