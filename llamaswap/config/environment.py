"""`${env.NAME}` replaced in the text of a file, before it is YAML.

Knows text and the environment, and keeps track of the columns that a replacement moves.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from collections.abc import Mapping as Names
from dataclasses import dataclass, field

from llamaswap.config.document import LARGEST, NotYaml, compose
from llamaswap.config.mistakes import Place, Report
from llamaswap.config.nodes import Alias, Mapping, Node, Scalar, Sequence

_REFERENCE = re.compile(r"\$\{env\.([a-zA-Z_][a-zA-Z0-9_]*)\}")
_UNUSABLE = re.compile("[\r\n\0]")

ROUNDS = 2
"""A value may itself hold references; theirs may not."""


@dataclass(frozen=True, slots=True)
class Substituted:
    """A text, and where its characters stood before."""

    file: str
    text: str
    # line -> ascending (column after the replacement, how far what follows was moved)
    shifts: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    before: Substituted | None = None

    def locate(self, line: int, column: int) -> Place:
        """From a position counted from 0 to a place in the file as it is on disk."""
        moved = self.shifts.get(line, [])
        passed = bisect_right(moved, (column, LARGEST * 2))
        original = max(0, column - (moved[passed - 1][1] if passed else 0))
        if self.before is not None:
            return self.before.locate(line, original)
        return Place(self.file, line + 1, original + 1)


def substitute(file: str, text: str, environ: Names[str, str], report: Report) -> Substituted:
    """Put the environment's values in.

    Backslashes and double quotes of a value are escaped, as double-quoted YAML needs it.
    A name that only a comment mentions need not exist.
    """
    current = Substituted(file, text)
    for _ in range(ROUNDS):
        if not _REFERENCE.search(current.text):
            break
        current = _substitute_once(current, environ, report)
    return current


def _substitute_once(source: Substituted, environ: Names[str, str], report: Report) -> Substituted:
    needed = _names_in_use(source) if _is_in_doubt(source.text, environ) else frozenset()
    lines: list[str] = []
    shifts: dict[int, list[tuple[int, int]]] = {}
    size = 0
    for number, line in enumerate(source.text.split("\n")):
        pieces, moved, end = [], 0, 0
        for match in _REFERENCE.finditer(line):
            value = _value(match[1], source.locate(number, match.start()), environ, needed, report)
            replacement = match[0] if value is None else value
            pieces += [line[end : match.start()], replacement]
            end = match.end()
            moved += len(replacement) - len(match[0])
            size += len(replacement)
            shifts.setdefault(number, []).append((end + moved, moved))
        if size > LARGEST:
            report.wrong(source.locate(number, 0), "", "the environment's values are too long")
            break
        lines.append("".join([*pieces, line[end:]]))
    return Substituted(source.file, "\n".join(lines), shifts, source)


def _value(
    name: str, place: Place, environ: Names[str, str], needed: frozenset[str], report: Report
) -> str | None:
    """What stands for one reference; None leaves it as it is."""
    value = environ.get(name)
    if value is None:
        if name in needed:
            report.wrong(place, "", f"environment variable {name} is not set")
        return None
    if name in needed and _UNUSABLE.search(value):
        report.wrong(place, "", f"environment variable {name} holds a line break or NUL")
        return None
    return _UNUSABLE.sub(" ", value).replace("\\", "\\\\").replace('"', '\\"')


def _is_in_doubt(text: str, environ: Names[str, str]) -> bool:
    """Whether it matters which names are only in comments; to find out, the text must be parsed."""
    values = [environ.get(name) for name in frozenset(_REFERENCE.findall(text))]
    return any(value is None or _UNUSABLE.search(value) for value in values)


def _names_in_use(source: Substituted) -> frozenset[str]:
    """Names outside comments; all of them where the text is no YAML before replacement."""
    try:
        root = compose(source.text, source.locate)
    except NotYaml:
        return frozenset(_REFERENCE.findall(source.text))
    texts = [] if root is None else _texts(root)
    return frozenset(name for text in texts for name in _REFERENCE.findall(text))


def _texts(node: Node) -> Iterator[str]:
    """Every text below a node; an alias is visited where its anchor stands."""
    if isinstance(node, Scalar):
        yield node.text
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from _texts(item)
    elif isinstance(node, Mapping):
        for key, value in node.entries:
            yield key.text
            yield from _texts(value)
    else:
        assert isinstance(node, Alias)
