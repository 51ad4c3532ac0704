"""Where something stands in a file, and what is wrong there.

Knows how a complaint reads and how complaints are collected; knows nothing of YAML or of
any setting.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field

from typing_extensions import override

MOST_GUESSES = 100
"""Comparing names is slow, and nobody reads the hundredth guess."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A position in a file; line and column count from 1."""

    file: str
    line: int = 1
    column: int = 1

    @override
    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that must be changed before the configuration can be used."""

    file: str
    line: int  # from 1
    column: int  # from 1
    path: str  # `models.qwen3.ttl`; empty for the document itself
    what: str

    @override
    def __str__(self) -> str:
        return sentence(Place(self.file, self.line, self.column), self.path, self.what)


class ConfigRejected(Exception):
    """The configuration can't be used.  `str()` is one line per mistake."""

    def __init__(self, mistakes: tuple[Mistake, ...], warnings: tuple[str, ...] = ()) -> None:
        assert mistakes
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes
        self.warnings = warnings  # one line each; what was noticed before loading ended


def sentence(place: Place, path: str, what: str) -> str:
    """One line that an editor can jump to."""
    line = f"{place}: {path}: {what}" if path else f"{place}: {what}"
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)


def below(path: str, key: str | int) -> str:
    """The path of a child: `models` and `qwen3` make `models.qwen3`, a number `[3]`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


@dataclass(slots=True)
class Report:
    """Mistakes and warnings as they are found.

    A value whose macros could not be resolved is complained about once: what a reader
    then says about the same place would only repeat it.
    """

    files: list[str] = field(default_factory=list)  # in the order in which they are read
    mistakes: list[Mistake] = field(default_factory=list)
    _warnings: list[tuple[Place, str]] = field(default_factory=list)
    _settled: set[Place] = field(default_factory=set)
    _guesses_left: int = MOST_GUESSES

    def wrong(self, place: Place, path: str, what: str) -> None:
        """Note a mistake, unless its place has been settled."""
        if place not in self._settled:
            self.mistakes.append(Mistake(place.file, place.line, place.column, path, what))

    def settle(self, place: Place, path: str, what: str) -> None:
        """Note a mistake that makes any later one at this place idle."""
        self.wrong(place, path, what)
        self._settled.add(place)

    def warn(self, place: Place, path: str, what: str) -> None:
        """Note something that loads, but is probably not what was meant."""
        self._warnings.append((place, sentence(place, path, what)))

    def guess(self, name: str, known: Iterable[str]) -> str:
        """An addition to a complaint: the known name that is nearest, if one is near."""
        if self._guesses_left <= 0:
            return ""
        self._guesses_left -= 1
        lowered = {one.lower(): one for one in known}
        near = difflib.get_close_matches(name[:100].lower(), lowered, n=1, cutoff=0.65)
        return f"; did you mean {lowered[near[0]]!r}?" if near else ""

    def reject_if_wrong(self) -> None:
        """Raises:
        ConfigRejected: there is a mistake; all of them, in file order.
        """
        if self.mistakes:
            raise self.rejection()

    def rejection(self) -> ConfigRejected:
        """The exception that carries what has been found so far."""
        mistakes = dict.fromkeys(sorted(self.mistakes, key=self._order))
        return ConfigRejected(tuple(mistakes), self.warnings())

    def warnings(self) -> tuple[str, ...]:
        """One line each, in file order."""
        ordered = sorted(self._warnings, key=lambda warning: self._rank(warning[0]))
        return tuple(dict.fromkeys(text for _, text in ordered))

    def _order(self, mistake: Mistake) -> tuple[int, int, int]:
        return self._rank(Place(mistake.file, mistake.line, mistake.column))

    def _rank(self, place: Place) -> tuple[int, int, int]:
        known = self.files.index(place.file) if place.file in self.files else len(self.files)
        return known, place.line, place.column
