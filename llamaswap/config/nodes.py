"""The tree that a configuration is while it is read: values that know where they stand.

No YAML here, and no settings: just four shapes and how a scalar's value is written as text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from llamaswap.config.mistakes import Place

EXPONENT_FROM = 6
"""From this power of ten on, a float is spelt with an exponent."""


class Timestamp(str):
    """A date or time, in RFC 3339."""

    __slots__ = ()


class OddKeys(dict[str, Any]):
    """A free-form mapping of which some keys were no text; its own keys are how they are spelt."""

    __slots__ = ("written",)

    def __init__(self, entries: Iterable[tuple[Any, str, Any]]) -> None:
        """Take (key as it was, its spelling, value) for each entry."""
        entries = tuple(entries)
        super().__init__({spelt: value for _, spelt, value in entries})
        self.written = tuple((key, value) for key, _, value in entries)


Plain: TypeAlias = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value.  `text` is its spelling in the file, as far as it came from there."""

    place: Place
    value: Plain
    text: str = ""
    tag: str = ""  # as resolved, `int`, `str` ...; only compared when files are merged


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    place: Place
    items: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapping, in the order of the file.

    `opaque`: a key that is not text was among the keys; macros don't reach inside.
    `merged`: where a merge key stood, once it has been resolved.
    """

    place: Place
    entries: tuple[Entry, ...] = ()
    opaque: bool = False
    merged: Place | None = None

    def get(self, key: str) -> Node | None:
        """The value under this key, as the file spells it."""
        return next((value for name, value in self.entries if spell(name.value) == key), None)


@dataclass(frozen=True, slots=True)
class Alias:
    """`*name`: only in trees that have not been expanded."""

    place: Place
    name: str
    target: Node


Node: TypeAlias = Scalar | Sequence | Mapping | Alias
Entry: TypeAlias = tuple[Scalar, Node]


def spell(value: Plain) -> str:
    """How a value reads where text is wanted: `010` becomes `8`, `1.50` becomes `1.5`."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _spell_float(value)
    return str(value)


def describe(node: Node) -> str:
    """A value as it is named in a complaint."""
    if isinstance(node, Sequence):
        return "a list"
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, Alias):
        return f"*{node.name}"
    if node.value is None:
        return "nothing"
    shown = repr(str(node.value)) if isinstance(node.value, str) else spell(node.value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _spell_float(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    parts = Decimal(repr(value)).normalize().as_tuple()
    digits = "".join(map(str, parts.digits))
    assert isinstance(parts.exponent, int)
    sign = "-" if parts.sign else ""
    return sign + (_place_point(digits, len(digits) + parts.exponent) if value else "0")


def _place_point(digits: str, point: int) -> str:
    """Write 0.DIGITS times ten to the power of `point`, the way Go's `%g` does."""
    exponent = point - 1
    if exponent < -4 or exponent >= EXPONENT_FROM:
        fraction = f".{digits[1:]}" if digits[1:] else ""
        return f"{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if point <= 0:
        return f"0.{'0' * -point}{digits}"
    if point >= len(digits):
        return digits + "0" * (point - len(digits))
    return f"{digits[:point]}.{digits[point:]}"
