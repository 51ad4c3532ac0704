"""`matrix`: which models may be loaded together, by expressions over short names."""

from __future__ import annotations

import re
from collections.abc import Mapping as Names
from dataclasses import dataclass
from types import MappingProxyType

from llamaswap.config.matrix_sets import (
    Expression,
    Model,
    TooManyCombinations,
    WrongExpression,
    atoms,
    in_order,
    parse_set,
    together,
)
from llamaswap.config.mistakes import Report
from llamaswap.config.model import MatrixConfig
from llamaswap.config.natural_order import natural_order
from llamaswap.config.reading import Named, Section, text_of, whole_of

MOST_SETS = 500

_VARIABLE = re.compile(r"[a-zA-Z0-9.-]{1,32}")


@dataclass(frozen=True, slots=True)
class ReadMatrix:
    """A matrix with its expressions parsed."""

    config: MatrixConfig
    sets: Names[str, Expression] | None  # None: they hold a mistake, which has been reported

    def allows(self, models: frozenset[str]) -> bool:
        """Whether one set holds all these models; taken for granted where that can't be told."""
        if self.sets is None:
            return True
        try:
            return together(models, self.sets, self.config.vars)
        except TooManyCombinations:
            return True


def read_matrix(section: Section, models: frozenset[str], report: Report) -> ReadMatrix:
    """Read a matrix; names in it are variables or real model ids, never aliases."""
    variables = _variables(section, models)
    costs = _costs(section, variables, models)
    named = sorted(section.named("sets"), key=lambda entry: natural_order(entry.key))
    if not named:
        section.wrong("sets", "expected at least one set")
    if len(named) > MOST_SETS:
        section.wrong("sets", f"expected at most {MOST_SETS} sets, got {len(named)}")
        named = named[:MOST_SETS]
    texts = {entry.name: text_of(entry.node, entry.path, report) or "" for entry in named}
    sets = _parsed(named, texts, report)
    sound = _check_names(named, sets, models | variables.keys(), report)
    section.close()
    config = MatrixConfig(
        vars=MappingProxyType(variables), costs=MappingProxyType(costs), sets=tuple(texts.items())
    )
    return ReadMatrix(config, MappingProxyType(sets) if sound else None)


def _variables(section: Section, models: frozenset[str]) -> dict[str, str]:
    variables: dict[str, str] = {}
    for entry in section.named("vars"):
        target = text_of(entry.node, entry.path, section.report) or ""
        if not _VARIABLE.fullmatch(entry.name):
            section.report.wrong(
                entry.place, entry.path, "expected 1 to 32 letters, digits, '.' or '-' as its name"
            )
        if target not in models:
            section.report.wrong(entry.node.place, entry.path, f"{target!r} is no model id")
        variables[entry.name] = target
    return variables


def _costs(section: Section, variables: dict[str, str], models: frozenset[str]) -> dict[str, int]:
    costs: dict[str, int] = {}
    for entry in section.named("evict_costs"):
        cost = whole_of(entry.node, entry.path, section.report, "a whole number") or 0
        if cost < 1:
            section.report.wrong(entry.node.place, entry.path, f"expected a cost from 1, got {cost}")
        model = variables.get(entry.name, entry.name)
        if model not in models and entry.name not in variables:
            section.report.wrong(entry.place, entry.path, f"{entry.name!r} is no variable or model id")
        elif model in costs:
            section.report.warn(entry.place, entry.path, f"{model!r} already has a cost; the last one counts")
        costs[model] = cost
    return costs


def _parsed(named: list[Named], texts: dict[str, str], report: Report) -> dict[str, Expression]:
    sets: dict[str, Expression] = {}
    for entry in named:
        try:
            sets[entry.name] = parse_set(texts[entry.name])
        except WrongExpression as error:
            report.wrong(entry.node.place, entry.path, str(error))
    return sets


def _check_names(
    named: list[Named], sets: dict[str, Expression], known: frozenset[str], report: Report
) -> bool:
    """Whether every name means something, and no set needs itself; reports it otherwise."""
    places = {entry.name: entry for entry in named}
    sound = len(sets) == len(named)
    for entry in named:
        for atom in atoms(sets[entry.name]) if entry.name in sets else ():
            if atom.name in (known if isinstance(atom, Model) else places):
                continue
            sound = False
            kind = "variable or model id" if isinstance(atom, Model) else "set"
            report.wrong(entry.node.place, entry.path, f"{atom.name!r} is no {kind}")
    if not sound:
        return False
    try:
        in_order(sets)
    except WrongExpression as error:
        report.wrong(places[error.name].node.place, places[error.name].path, str(error))
        return False
    return True
