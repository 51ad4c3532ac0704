"""A rule that finds a model or a priority for a record: all the same, by a column's value, or by lot.

Pure: the lots are drawn from a generator that is handed in.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import accumulate
from random import Random
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Choice(Generic[T]):
    """One value, or several, each with its share of the records."""

    values: tuple[T, ...]
    shares: tuple[float, ...] = (1.0,)  # > 0; only how they relate to each other matters

    def lot(self, random: Random) -> Callable[[], T]:
        """Return what draws; a single value takes nothing out of the generator."""
        if len(self.values) == 1:
            (only,) = self.values
            return lambda: only
        steps = tuple(accumulate(self.shares))
        values, total, last = self.values, steps[-1], len(self.values) - 1
        return lambda: values[min(bisect_right(steps, random.random() * total), last)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Generic[T]):
    """What a record comes to, by the value of one of its columns."""

    source: str | None = None  # the column; None = the record's own word
    values: Mapping[str, Choice[T]]  # by value, or by a pattern as in a shell; the first that fits counts
    default: Choice[T] | None = None  # of every other record; None = what the record says itself


def everyone(choice: Choice[T]) -> Rule[T]:
    """Return the rule that does the same with every record."""
    return Rule(values={}, default=choice)


class Applied(Generic[T]):
    """A rule at work on one trace; its lots depend on the seed, the trace and nothing else."""

    def __init__(self, rule: Rule[T] | None, seed: str) -> None:
        self._rule: Rule[T] = rule if rule is not None else Rule(values={})
        self._random = Random(seed)  # noqa: S311 - lots that can be drawn again
        self._lots: dict[str, Callable[[], T] | None] = {}

    @property
    def source(self) -> str | None:
        """The column that it looks at."""
        return self._rule.source

    def of(self, value: str) -> T | None:
        """Return what a record with this value comes to; None where the record has to say it itself."""
        if value not in self._lots:
            choice = self._choice(value)
            self._lots[value] = None if choice is None else choice.lot(self._random)
        lot = self._lots[value]
        return None if lot is None else lot()

    def _choice(self, value: str) -> Choice[T] | None:
        rule = self._rule
        if value in rule.values:
            return rule.values[value]
        fits = (choice for pattern, choice in rule.values.items() if fnmatchcase(value, pattern))
        return next(fits, rule.default)
