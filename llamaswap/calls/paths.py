"""The keys of `setParams` and `stripParams`: dotted paths into a JSON document.

Pure.  `a.b` is `b` in the object `a`, `a.0` the first element of the array `a`,
`a.-1` its end; `\\.` is a dot in a key, and a `:` in front makes a number a key.
"""

from __future__ import annotations

from dataclasses import dataclass

# These mean a search; a search has no one place that could be edited.
_SEARCHES = frozenset("*?#|@")

_END = "-1"


@dataclass(frozen=True, slots=True)
class Step:
    """One part of a path."""

    key: str
    index: int | None = None  # what it means to an array
    is_end: bool = False  # the end of an array

    @property
    def wants_array(self) -> bool:
        """Whether a container made for this step is an array."""
        return self.is_end or self.index is not None


Path = tuple[Step, ...]


def parse_path(text: str) -> Path | None:
    """Take a key apart; None for one that is a search and leads to no one place."""
    steps: list[Step] = []
    part: list[str] = []
    escaped = forced = False
    for at, char in enumerate(text):
        if escaped:
            part.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == ".":
            steps.append(_step("".join(part), forced=forced))
            part, forced = [], False
        elif char == ":" and not part and not forced and (at == 0 or text[at - 1] == "."):
            forced = True
        elif char in _SEARCHES:
            return None
        else:
            part.append(char)
    steps.append(_step("".join(part), forced=forced))
    return tuple(steps)


def _step(key: str, *, forced: bool) -> Step:
    if forced:
        return Step(key)
    if key == _END:
        return Step(key, is_end=True)
    return Step(key, int(key) if key.isascii() and key.isdecimal() else None)
