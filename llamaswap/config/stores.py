"""Top-level keys that are there to hold anchors, or are marked as notes by their `x-`.

Such a key is unknown on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from llamaswap.config.mistakes import Place
from llamaswap.config.nodes import Alias, Mapping, Node, Sequence

NOTE = "x-"


def anchor_stores(root: Mapping) -> frozenset[str]:
    """The keys of a tree, as written, that hold something an alias refers to."""
    used = frozenset(node.target.place for node in _nodes(root) if isinstance(node, Alias))
    return frozenset(
        key.text for key, value in root.entries if key.text.startswith(NOTE) or _holds(value, used)
    )


def _holds(node: Node, places: frozenset[Place]) -> bool:
    return any(one.place in places for one in _nodes(node))


def _nodes(node: Node) -> Iterator[Node]:
    """A node and everything below it; not what aliases refer to."""
    yield node
    if isinstance(node, Sequence):
        for item in node.items:
            yield from _nodes(item)
    elif isinstance(node, Mapping):
        for _, value in node.entries:
            yield from _nodes(value)
