"""The expressions of `matrix.sets`: their grammar, and which models one allows together.

    expr := term { "|" term }      term := atom { "&" atom }
    atom := NAME | "+" SET | "(" expr ")"

Knows what an expression means to a check of the configuration.  The planner that decides
on evictions lives in `llamaswap.scheduling`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

DEEPEST = 64
"""Levels of parentheses."""

MOST_COMBINATIONS = 1024
"""Looked at in one step of `together`."""

_BLANKS = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class Model:
    """A variable or model, by the name used in the expression."""

    name: str


@dataclass(frozen=True, slots=True)
class Reference:
    """`+name`: another set."""

    name: str


@dataclass(frozen=True, slots=True)
class Either:
    """One of these."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Both:
    """Each of these."""

    parts: tuple[Expression, ...]


Expression: TypeAlias = Model | Reference | Either | Both
Family: TypeAlias = frozenset[frozenset[str]]
"""Sets of models."""


class WrongExpression(ValueError):
    """Not an expression; says why, and for a circle of sets, whose."""

    def __init__(self, what: str, *, name: str = "") -> None:
        super().__init__(what)
        self.name = name


class TooManyCombinations(Exception):
    """An expression allows so much that checking it would take too long."""


def parse_set(text: str) -> Expression:
    """Raises:
    WrongExpression: the text is empty or breaks the grammar.
    """
    return _Parser(text).parse()


def atoms(expression: Expression) -> Iterator[Model | Reference]:
    """Every name in an expression, in its order."""
    if isinstance(expression, Model | Reference):
        yield expression
    else:
        for part in expression.parts:
            yield from atoms(part)


def in_order(sets: Mapping[str, Expression]) -> tuple[str, ...]:
    """The names of the sets, each after those that it refers to.

    Raises:
        WrongExpression: sets refer to each other in a circle; `name` is one of them.
    """
    done: dict[str, None] = {}
    for start in sets:
        path: dict[str, Iterator[str]] = {} if start in done else {start: _references(sets, start)}
        while path:
            name = next(reversed(path))
            following = next(path[name], None)
            if following is None:
                done[name] = None
                del path[name]
            elif following in path:
                raise WrongExpression(f"the set {following!r} refers to itself", name=following)
            elif following not in done:
                path[following] = _references(sets, following)
    return tuple(done)


def together(wanted: frozenset[str], sets: Mapping[str, Expression], ids: Mapping[str, str]) -> bool:
    """Whether one set allows all the wanted models at once.

    Args:
        wanted: real model ids.
        sets: expressions by name, without circles.
        ids: variable to real id; a name that is missing is an id itself.

    Raises:
        TooManyCombinations: it would take too long to find out.
    """
    known: dict[str, Family] = {}
    for name in in_order(sets):
        known[name] = _combinations(sets[name], wanted, ids, known)
    return any(wanted in family for family in known.values())


def _combinations(
    node: Expression, wanted: frozenset[str], ids: Mapping[str, str], known: Mapping[str, Family]
) -> Family:
    """What an expression allows of the wanted models, without what is part of something larger."""
    if isinstance(node, Model):
        return frozenset({wanted & {ids.get(node.name, node.name)}})
    if isinstance(node, Reference):
        return known[node.name]
    parts = [_combinations(part, wanted, ids, known) for part in node.parts]
    if isinstance(node, Either):
        return _largest(frozenset(one for part in parts for one in part))
    combined: Family = frozenset({frozenset()})
    for part in parts:
        if len(combined) * len(part) > MOST_COMBINATIONS:
            raise TooManyCombinations
        combined = _largest(frozenset(left | right for left in combined for right in part))
    return combined


def _largest(family: Family) -> Family:
    if len(family) > MOST_COMBINATIONS:
        raise TooManyCombinations
    return frozenset(one for one in family if not any(one < other for other in family))


def _references(sets: Mapping[str, Expression], name: str) -> Iterator[str]:
    return (atom.name for atom in atoms(sets[name]) if isinstance(atom, Reference) and atom.name in sets)


class _Parser:
    """Recursive descent over characters."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def parse(self) -> Expression:
        if not self._peek():
            raise WrongExpression("expected an expression, got nothing")
        expression = self._either()
        if self._peek():
            raise WrongExpression(f"expected '&' or '|' before {self._text[self._at : self._at + 20]!r}")
        return expression

    def _peek(self) -> str:
        """The next character that is no blank; '' at the end."""
        blanks = _BLANKS.match(self._text, self._at)
        assert blanks is not None
        self._at = blanks.end()
        return self._text[self._at : self._at + 1]

    def _either(self) -> Expression:
        parts = [self._both()]
        while self._peek() == "|":
            self._at += 1
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _both(self) -> Expression:
        parts = [self._atom()]
        while self._peek() == "&":
            self._at += 1
            parts.append(self._atom())
        return parts[0] if len(parts) == 1 else Both(tuple(parts))

    def _atom(self) -> Expression:
        char = self._peek()
        if char == "(":
            return self._group()
        if char == "+":
            self._at += 1
            name = self._name()
            if not name:
                raise WrongExpression("expected a set's name right after '+'")
            return Reference(name)
        name = self._name()
        if not name:
            found = f"{char!r}" if char else "the end"
            raise WrongExpression(f"expected a name, '+' or '(', got {found}")
        return Model(name)

    def _group(self) -> Expression:
        self._depth += 1
        if self._depth > DEEPEST:
            raise WrongExpression(f"more than {DEEPEST} parentheses inside each other")
        self._at += 1
        inner = self._either()
        if self._peek() != ")":
            raise WrongExpression("a parenthesis is not closed")
        self._at += 1
        self._depth -= 1
        return inner

    def _name(self) -> str:
        start = self._at
        while self._at < len(self._text) and _is_name(self._text[self._at]):
            self._at += 1
        return self._text[start : self._at]


def _is_name(char: str) -> bool:
    return char.isalpha() or char.isdecimal() or char in "_-."
