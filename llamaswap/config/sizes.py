"""Sizes of memory the way people write them: `8MiB`, `1.5GiB`, `500 MB`, or a number of bytes."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from llamaswap.config.nodes import Scalar, describe
from llamaswap.config.reading import Section

SIZE: Final = r"^([0-9]{1,15}(?:\.[0-9]{1,15})?) ?(?:(?:([kKMGT])(i?))?B)?$"
"""What a text must look like to be a size; for the schema, too."""

_PARTS = re.compile(SIZE)
_POWERS = "KMGT"


def parse_size(text: str) -> int | None:
    """Bytes, a fraction of one dropped; None when the text is no size."""
    parts = _PARTS.fullmatch(text)
    if parts is None:
        return None
    number, power, binary = parts.groups()
    exponent = _POWERS.index(power.upper()) + 1 if power else 0
    return int(Fraction(number) * (1024 if binary else 1000) ** exponent)


def read_size(section: Section, key: str) -> int | None:
    """A size in bytes, from 0; None when the key is missing or null, and after a complaint."""
    node = section.node(key)
    if node is None:
        return None
    value = node.value if isinstance(node, Scalar) else None
    if isinstance(value, str):
        size = parse_size(value)
    elif isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf"):
        size = int(value)
    else:
        size = None
    if size is None:
        section.wrong(key, f"expected bytes like 1048576 or a size like 64MiB, got {describe(node)}")
    return size
