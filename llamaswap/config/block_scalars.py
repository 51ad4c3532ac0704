"""How a text of several lines changes when the reference writes the configuration out and reads it again.

llama-swap does so twice on its way from file to settings, and its YAML library (yaml.v3) is not exact
about line breaks there.  Only what moves line breaks is here; where it would refuse its own output (a text
that begins with a blank, in a list), ours stays as the file has it.
"""

from __future__ import annotations

import re
from dataclasses import replace

from llamaswap.config.nodes import Mapping, Node, Scalar, Sequence

_BLANKS = (" ", "\t")
_LINES = re.compile(r"([^\n]+)(\n*)")

# What can't stand in a block: the library writes such a text in double quotes, where it is exact.
# A tab can; a character of more than 16 bits can't.
_ONLY_QUOTED = re.compile(r"\A\Z| [\n\u2028\u2029]| \Z|[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]")


def written_back(text: str, *, folded: bool) -> str:
    """What becomes of a text that stands in a block, `|` or `>`, when it is written out as one.

    The first line break is lost if the text begins with it: it ends the line of the `|`.  In a folded
    block, a break after a line without indentation is written twice and one before or after an indented
    line is not, or none is written twice if the text's first line is indented.
    """
    if _ONLY_QUOTED.search(text):
        return text
    return _folded(text) if folded else text.removeprefix("\n")


def written_out(tree: Mapping) -> Mapping:
    """The tree after the second time, when every text of several lines is written as a `|` block."""
    return replace(tree, entries=tuple((key, _written_out(value)) for key, value in tree.entries))


def _written_out(node: Node) -> Node:
    if isinstance(node, Mapping):
        return written_out(node)
    if isinstance(node, Sequence):
        return replace(node, items=tuple(map(_written_out, node.items)))
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.startswith("\n"):
        return replace(node, value=written_back(node.value, folded=False))
    return node


def _folded(text: str) -> str:
    """Write with the library's rule, and fold as every reader does."""
    body = text.lstrip("\n")
    doubles = not body.startswith(_BLANKS)
    lines = [(line, len(breaks)) for line, breaks in _LINES.findall(body)]
    read = ["\n" * max(0, len(text) - len(body) - 1)]
    for number, (line, breaks) in enumerate(lines):
        indented = line.startswith(_BLANKS)
        written = breaks + 1 if breaks and doubles and not indented else breaks
        last = number + 1 == len(lines)
        if last:
            read += [line, "\n" * (written if breaks > 1 else breaks)]
        elif indented or lines[number + 1][0].startswith(_BLANKS):
            read += [line, "\n" * written]
        else:
            read += [line, "\n" * (written - 1) if written > 1 else " "]
    return "".join(read)
