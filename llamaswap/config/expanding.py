"""Aliases and merge keys resolved: every user of an anchor gets a copy of its own.

Works on one merged tree; what a key means is not known here.
"""

from __future__ import annotations

from llamaswap.config.document import DEEPEST, NotYaml
from llamaswap.config.mistakes import Place
from llamaswap.config.nodes import Alias, Entry, Mapping, Node, Scalar, Sequence, Timestamp

MOST_NODES = 200_000
"""Values after expansion, copies counted: an alias bomb ends here."""


def expand(root: Node) -> Node:
    """The tree without aliases and merge keys.

    Raises:
        NotYaml: a merge key without mappings, or too much of it.
    """
    return _Expander().expand(root, 0)


class _Expander:
    def __init__(self) -> None:
        self._count = 0

    def expand(self, node: Node, depth: int) -> Node:
        while isinstance(node, Alias):
            node = node.target
        self._count += 1
        if self._count > MOST_NODES:
            raise NotYaml(node.place, f"more than {MOST_NODES} values once its aliases are expanded")
        if depth > DEEPEST:
            raise NotYaml(node.place, f"nested more than {DEEPEST} levels deep")
        if isinstance(node, Sequence):
            return Sequence(node.place, tuple(self.expand(item, depth + 1) for item in node.items))
        if isinstance(node, Mapping):
            return self._mapping(node, depth)
        return node

    def _mapping(self, node: Mapping, depth: int) -> Mapping:
        own: dict[object, Entry] = {}
        merged: list[Mapping] = []
        place: Place | None = None
        for key, value in node.entries:
            if key.text == "<<" and key.tag in {"str", "merge"}:
                place = key.place
                merged = self._merged(value, depth)
            else:
                own[_identity(key)] = (key, self.expand(value, depth + 1))
        for source in merged:
            for key, value in source.entries:
                own.setdefault(_identity(key), (key, value))
        opaque = any(source.opaque for source in merged) or any(not _is_text(key) for key, _ in own.values())
        return Mapping(node.place, tuple(own.values()), opaque, place)

    def _merged(self, value: Node, depth: int) -> list[Mapping]:
        """What `<<` brings in; the first source wins."""
        expanded = self.expand(value, depth + 1)
        sources = expanded.items if isinstance(expanded, Sequence) else (expanded,)
        if not all(isinstance(source, Mapping) for source in sources):
            raise NotYaml(value.place, "YAML: << takes a mapping or a list of mappings")
        return [source for source in sources if isinstance(source, Mapping)]


def _identity(key: Scalar) -> object:
    """Keys with equal values are one key: `16` and `0x10`, but not `16` and `'16'`."""
    return type(key.value), key.value


def _is_text(key: Scalar) -> bool:
    return isinstance(key.value, str) and not isinstance(key.value, Timestamp)
