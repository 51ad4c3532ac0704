"""Several files to one tree.

Knows the rules for a key that two files use, on nodes as written: an alias is an alias, a
scalar its text.  Anchors have been bound within their own file before.
"""

from __future__ import annotations

from llamaswap.config.mistakes import Report, below
from llamaswap.config.nodes import Alias, Entry, Mapping, Node, Scalar, Sequence, describe

ONE_OWNER = frozenset(
    {
        "models",
        "groups",
        "profiles",
        "selectors",
        "peers",
        "matrix",
        "routing.router.settings.groups",
        "routing.router.settings.matrix",
    }
)
"""Mappings whose entries must each come from a single file."""


def merge(files: list[Mapping], report: Report) -> Mapping:
    """Fold files, in their order; conflicts are reported at the later file's place."""
    merged = files[0]
    for later in files[1:]:
        merged = _mappings(merged, later, "", report)
    return merged


def _mappings(first: Mapping, later: Mapping, path: str, report: Report) -> Mapping:
    entries: dict[str, Entry] = {key.text: (key, value) for key, value in first.entries}
    for key, value in later.entries:
        here = below(path, key.text)
        known = entries.get(key.text)
        if known is None:
            entries[key.text] = (key, value)
        elif path in ONE_OWNER:
            report.wrong(key.place, here, f"already defined at {known[0].place}")
        else:
            entries[key.text] = (known[0], _values(known[1], value, here, report))
    return Mapping(first.place, tuple(entries.values()))


def _values(first: Node, later: Node, path: str, report: Report) -> Node:
    if isinstance(first, Mapping) and isinstance(later, Mapping):
        return _mappings(first, later, path, report)
    if path not in ONE_OWNER:
        if isinstance(first, Sequence) and isinstance(later, Sequence):
            return Sequence(first.place, first.items + later.items)
        if _is_nothing(first):
            return later
        if _is_nothing(later):
            return first
        if isinstance(first, Scalar) and isinstance(later, Scalar) and _reads_alike(first, later):
            return first
    report.wrong(later.place, path, f"conflicts with {_shown(first)} at {first.place}")
    return first


def _is_nothing(node: Node) -> bool:
    """`key:` without a value; a written `~` or `null` is a value like any other."""
    return isinstance(node, Scalar) and node.value is None and not node.text


def _reads_alike(first: Scalar, later: Scalar) -> bool:
    return (first.text, first.tag) == (later.text, later.tag)


def _shown(node: Node) -> str:
    return "an alias" if isinstance(node, Alias) else describe(node)
