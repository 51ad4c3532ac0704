"""`${NAME}` in values: what may be declared, how it is replaced, what must not be left.

Knows one scope at a time.  Which macros a model sees, and where its port comes from, is
`model_macros`' subject.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from llamaswap.config.mistakes import Place, Report, below
from llamaswap.config.nodes import Mapping, Node, Plain, Scalar, Sequence, Timestamp, describe, spell

RESERVED = frozenset({"PORT", "PID", "MODEL_ID"})

MOST_CHARACTERS = 16_777_216
"""Text produced by macros in one configuration, in characters."""

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,63}")
_PLACEHOLDER = re.compile(r"\$\{([a-zA-Z0-9_-]+)\}")
_ENVIRONMENT = re.compile(r"\$\{env\.[a-zA-Z_][a-zA-Z0-9_]*\}")


@dataclass(frozen=True, slots=True)
class Macro:
    """A declared name; its value is never expanded itself."""

    name: str
    value: Plain

    @property
    def placeholder(self) -> str:
        return f"${{{self.name}}}"

    @property
    def text(self) -> str:
        """The value inside a longer text."""
        if isinstance(self.value, float) and not math.isfinite(self.value):
            return "NaN" if math.isnan(self.value) else f"{'+' if self.value > 0 else '-'}Inf"
        return spell(self.value)


class TooMuchText(Exception):
    """Macros that multiply each other; the place is where the limit was passed."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.what = f"macros expand to more than {MOST_CHARACTERS} characters"
        super().__init__(f"{place}: {self.what}")


def declarations(node: Node | None, path: str, report: Report) -> tuple[Macro, ...]:
    """Read a `macros` block, in its order; mistakes are reported and left out."""
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return ()  # none are left when all lines of the block are comments
    if not isinstance(node, Mapping):
        report.wrong(node.place, path, f"expected a mapping, got {describe(node)}")
        return ()
    if node.merged is not None:
        report.wrong(node.merged, path, "merge keys don't work in a macros block")
        return ()
    macros = []
    for key, value in node.entries:
        trouble = _trouble(key.text, value)
        if trouble:
            report.wrong(key.place, below(path, key.text), trouble)
        elif isinstance(value, Scalar):
            macros.append(Macro(key.text, value.value))
    return tuple(macros)


def _trouble(name: str, value: Node) -> str | None:
    """Why this can't be declared."""
    if name in RESERVED:
        return "this name is reserved"
    if not _NAME.fullmatch(name):
        return "expected a name of 1 to 63 letters, digits, '_' or '-'"
    if not isinstance(value, Scalar) or value.value is None or isinstance(value.value, Timestamp):
        return f"expected text, a number or a bool, got {describe(value)}"
    if isinstance(value.value, str) and Macro(name, "").placeholder in value.value:
        return "refers to itself"
    return None


@dataclass(slots=True)
class Substitution:
    """Replaces one scope's macros, the last first: a macro may use those before it."""

    macros: tuple[Macro, ...]
    budget: list[int] = field(default_factory=lambda: [MOST_CHARACTERS])  # shared between scopes
    _rank: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self._rank = {macro.name: rank for rank, macro in enumerate(self.macros)}

    def tree(self, node: Node) -> Node:
        """A copy with every text value replaced; keys stay, opaque mappings stay.

        Raises:
            TooMuchText: the budget is used up.
        """
        if isinstance(node, Sequence):
            return Sequence(node.place, tuple(self.tree(item) for item in node.items))
        if isinstance(node, Mapping):
            if node.opaque:
                return node
            return replace(node, entries=tuple((key, self.tree(value)) for key, value in node.entries))
        if isinstance(node, Scalar) and isinstance(node.value, str):
            value = self.value(node.value, node.place)
            return node if value is node.value else replace(node, value=value)
        return node

    def value(self, text: str, place: Place) -> Plain:
        """One text.  A text that is nothing but a placeholder takes the macro's type."""
        below_rank = len(self.macros)
        while "${" in text:
            used = {self._rank.get(name, below_rank) for name in _PLACEHOLDER.findall(text)}
            below_rank = max((rank for rank in used if rank < below_rank), default=-1)
            if below_rank < 0:
                break
            macro = self.macros[below_rank]
            self.spend(len(text) + text.count(macro.placeholder) * len(macro.text), place)
            if text == macro.placeholder:
                if not isinstance(macro.value, str):
                    return macro.value
                text = macro.value
            else:
                text = text.replace(macro.placeholder, macro.text)
        return text

    def spend(self, characters: int, place: Place) -> None:
        """Raises:
        TooMuchText: the budget that all scopes share is used up.
        """
        self.budget[0] -= characters
        if self.budget[0] < 0:
            raise TooMuchText(place)


def leftovers(node: Node, path: str, report: Report, *, allowed: Iterable[str] = ()) -> None:
    """Report every placeholder that is still in a value, except the allowed names."""
    if isinstance(node, Sequence):
        for number, item in enumerate(node.items):
            leftovers(item, below(path, number), report, allowed=allowed)
    elif isinstance(node, Mapping):
        for key, value in () if node.opaque else node.entries:
            leftovers(value, below(path, key.text), report, allowed=allowed)
    elif isinstance(node, Scalar) and isinstance(node.value, str):
        _leftover(node.value, node.place, path, report, frozenset(allowed))


def leftover_text(text: str, place: Place, path: str, report: Report) -> None:
    """The same for one text, a key for example."""
    _leftover(text, place, path, report, frozenset())


def _leftover(text: str, place: Place, path: str, report: Report, allowed: frozenset[str]) -> None:
    if "${" not in text:
        return
    unset = _ENVIRONMENT.search(text)
    if unset:
        report.settle(place, path, f"{unset[0]} is nested too deep in the environment, or not set")
        return
    names = [name for name in _PLACEHOLDER.findall(text) if name not in allowed]
    if names:
        report.settle(place, path, _unknown(names[0]))


def _unknown(name: str) -> str:
    if name == "PORT":
        return "${PORT} needs a cmd that uses it"
    if name == "PID":
        return "${PID} is only known to cmdStop"
    if name == "MODEL_ID":
        return "${MODEL_ID} is only known inside a model"
    return f"unknown macro ${{{name}}}; a macro can only use those declared before it"
