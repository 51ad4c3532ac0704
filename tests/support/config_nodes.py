"""Nodes for tests of a single step of loading."""

from __future__ import annotations

from llamaswap.config.document import compose
from llamaswap.config.mistakes import Place
from llamaswap.config.nodes import Mapping, Node, Scalar, Sequence


def at(line: int, column: int) -> Place:
    """The place of a position counted from 0."""
    return Place("f", line + 1, column + 1)


def tree(text: str) -> Node:
    """A text's nodes, aliases still in place."""
    root = compose(text, at)
    assert root is not None
    return root


def mapping(text: str) -> Mapping:
    """The same where it is a mapping."""
    root = tree(text)
    assert isinstance(root, Mapping)
    return root


def bare(node: Node) -> object:
    """What a tree without aliases says, without places."""
    if isinstance(node, Mapping):
        return {key.value: bare(value) for key, value in node.entries}
    if isinstance(node, Sequence):
        return [bare(item) for item in node.items]
    assert isinstance(node, Scalar)
    return node.value
