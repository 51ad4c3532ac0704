"""Readers: from a node to a Python value, with a complaint where that can't be.

Knows the conversions that this dialect allows (a number where text is wanted, `on` for a
bool, 60.9 for 60) and that a missing or null key means its default.  Knows no setting.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Mapping as Names
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from llamaswap.config.mistakes import Place, Report, below
from llamaswap.config.nodes import (
    Entry,
    Mapping,
    Node,
    OddKeys,
    Plain,
    Scalar,
    Sequence,
    Timestamp,
    describe,
    spell,
)

_TRUE = frozenset({"y", "Y", "yes", "Yes", "YES", "on", "On", "ON"})
_FALSE = frozenset({"n", "N", "no", "No", "NO", "off", "Off", "OFF"})
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Word:
    """A text that remembers where it stands."""

    text: str
    place: Place
    path: str


@dataclass(frozen=True, slots=True)
class Named:
    """One entry of a section whose keys are names."""

    name: str
    place: Place  # of the name
    path: str
    node: Node
    key: Plain = None  # the name's value as YAML: a bare `7` is a number


class Section:
    """A mapping that is being read.

    Each question names one key and its default; `close` then knows which keys nobody
    asked for.  A `zeroed` section stands for a null entry of a keyed section, to which
    defaults don't apply: every answer is zero or empty.
    """

    def __init__(
        self, node: Node | None, place: Place, path: str, report: Report, *, zeroed: bool = False
    ) -> None:
        self.path = path
        self.place = place
        self.report = report
        self.zeroed = zeroed
        self.given = isinstance(node, Mapping)
        self._values: dict[str, Entry] = {}
        self._known: set[str] = set()
        if isinstance(node, Mapping):
            self._values = {
                spell(key.value): (key, value) for key, value in node.entries if key.value is not None
            }
        elif node is not None and not _is_null(node):
            report.wrong(node.place, path, f"expected a mapping, got {describe(node)}")

    def node(self, key: str) -> Node | None:
        """The value under a key; None when it is missing or null."""
        self._known.add(key)
        entry = self._values.get(key)
        return None if entry is None or _is_null(entry[1]) else entry[1]

    def has(self, key: str) -> bool:
        """Whether the key is there with something other than null."""
        return self.node(key) is not None

    def mentions(self, key: str) -> bool:
        """Whether the key is there, null or not."""
        self._known.add(key)
        return key in self._values

    def place_of(self, key: str) -> Place:
        """Where a key's value stands; where the section stands if there is none."""
        entry = self._values.get(key)
        if entry is None:
            return self.place
        return entry[0].place if _is_null(entry[1]) else entry[1].place

    def key_place(self, key: str) -> Place:
        """Where the key itself stands."""
        entry = self._values.get(key)
        return self.place if entry is None else entry[0].place

    def wrong(self, key: str, what: str) -> None:
        """Complain about the value of a key."""
        self.report.wrong(self.place_of(key), below(self.path, key), what)

    def warn(self, key: str, what: str) -> None:
        """Warn about the value of a key."""
        self.report.warn(self.place_of(key), below(self.path, key), what)

    def text(self, key: str, default: str = "") -> str:
        """Any scalar, as text."""
        node = self.node(key)
        text = None if node is None else text_of(node, below(self.path, key), self.report)
        return ("" if self.zeroed else default) if text is None else text

    def word(self, key: str) -> Word:
        """The same, with its place."""
        return Word(self.text(key), self.place_of(key), below(self.path, key))

    def whole(self, key: str, default: int = 0, *, unit: str = "a whole number") -> int:
        """An integer; a float loses what is behind its point."""
        node = self.node(key)
        number = None if node is None else whole_of(node, below(self.path, key), self.report, unit)
        return (0 if self.zeroed else default) if number is None else number

    def seconds(self, key: str, default: int = 0) -> int:
        """A whole number of seconds, negative ones included."""
        return self.whole(key, default, unit="seconds")

    def flag(self, key: str, *, default: bool = False) -> bool:
        """A bool, or one of YAML 1.1's words for it."""
        node = self.node(key)
        if node is None:
            return default and not self.zeroed
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value in _TRUE | _FALSE:
            return value in _TRUE
        self.wrong(key, f"expected true or false, got {describe(node)}")
        return default

    def words(self, key: str) -> tuple[Word, ...]:
        """A list of texts; null elements vanish."""
        path = below(self.path, key)
        return tuple(
            Word(text, item.place, where)
            for item, where in self._items(key, path)
            if (text := text_of(item, where, self.report)) is not None
        )

    def texts(self, key: str) -> tuple[str, ...]:
        """The same without places."""
        return tuple(word.text for word in self.words(key))

    def section(self, key: str) -> Section:
        """A mapping below; empty when missing."""
        where = below(self.path, key)
        return Section(self.node(key), self.key_place(key), where, self.report, zeroed=self.zeroed)

    def named(self, key: str) -> tuple[Named, ...]:
        """The entries of a mapping whose keys are names, as the file has them."""
        path = below(self.path, key)
        node = self.node(key)
        if node is None:
            return ()
        if not isinstance(node, Mapping):
            self.wrong(key, f"expected a mapping, got {describe(node)}")
            return ()
        entries = {spell(name.value): (name, value) for name, value in node.entries if name.value is not None}
        return tuple(
            Named(name, key.place, below(path, name), value, key.value)
            for name, (key, value) in entries.items()
        )

    def free(self, key: str) -> Names[str, Any]:
        """A mapping of whatever the user likes, as plain Python values."""
        node = self.node(key)
        if node is None:
            return MappingProxyType({})
        if not isinstance(node, Mapping):
            self.wrong(key, f"expected a mapping, got {describe(node)}")
            return MappingProxyType({})
        value: Names[str, Any] = plain(node)
        return value if isinstance(value, OddKeys) else MappingProxyType(dict(value))

    def unread(self) -> tuple[Named, ...]:
        """The entries that nobody has asked for."""
        return tuple(
            Named(name, key.place, below(self.path, name), value)
            for name, (key, value) in self._values.items()
            if name not in self._known
        )

    def close(self, *ignored: str) -> None:
        """Warn about keys that nobody asked for, except the `ignored` ones."""
        for entry in self.unread():
            if entry.name not in ignored:
                self.report.warn(
                    entry.place,
                    entry.path,
                    f"unknown key{self.report.guess(entry.name, (*ignored, *self._known))}",
                )

    def _items(self, key: str, path: str) -> Iterator[tuple[Node, str]]:
        node = self.node(key)
        if isinstance(node, Sequence):
            for number, item in enumerate(node.items):
                yield item, below(path, number)
        elif node is not None:
            # Not the value itself: it may be a key that was meant to be in the list.
            self.wrong(
                key, f"expected a list, got {'a mapping' if isinstance(node, Mapping) else 'a single value'}"
            )


def entry_section(entry: Named, report: Report) -> Section:
    """A named entry as a section; a null one is zeroed."""
    return Section(entry.node, entry.place, entry.path, report, zeroed=_is_null(entry.node))


def text_of(node: Node, path: str, report: Report) -> str | None:
    """A scalar's text; None for null, and after a complaint for anything else."""
    if isinstance(node, Scalar):
        return None if node.value is None else spell(node.value)
    report.wrong(node.place, path, f"expected text, got {describe(node)}")
    return None


def whole_of(node: Node, path: str, report: Report, unit: str) -> int | None:
    """A number that fits 64 bits; None for null, and after a complaint."""
    value = node.value if isinstance(node, Scalar) else ""
    if value is None:
        return None
    number: int | None = None
    if isinstance(value, float) and math.isfinite(value):
        number = int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    if number is not None and number in _INT64:
        return number
    report.wrong(node.place, path, f"expected {unit}, got {describe(node)}")
    return None


def plain(node: Node) -> Any:
    """A free-form value: dicts, lists, text and numbers; keys and dates are text that knows what it was."""
    if isinstance(node, Mapping):
        entries = [(key, spell(key), plain(value)) for key, value in _pairs(node)]
        if all(isinstance(key, str) and not isinstance(key, Timestamp) for key, _, _ in entries):
            return {spelt: value for _, spelt, value in entries}
        return OddKeys(entries)
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    assert isinstance(node, Scalar)
    return node.value


def _pairs(node: Mapping) -> Iterator[tuple[Plain, Node]]:
    """A null key vanishes with its value."""
    for key, value in node.entries:
        if key.value is not None:
            yield key.value, value


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is None
