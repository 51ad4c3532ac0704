"""A configured value as JSON text, spelt the way Go spells it.

Pure.  Knows the spelling only; where the text goes is `llamaswap.calls.edits`' business.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

# Go writes text that may land in a page; the two separators end a line in older JavaScript.
_FOR_PAGES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}

_PLAIN = re.compile(r"[ !#-\[\]-\x7f]*")

_SMALLEST_FIXED, _LARGEST_FIXED = 1e-6, 1e21  # floats from here to there have no exponent

MOST_NESTED = 200
"""Levels of lists and mappings in one value."""


def json_text(value: Any) -> bytes:
    """Return a value as compact JSON: keys sorted, floats as short as they go.

    Args:
        value: what a YAML file can say: None, bool, int, float, str, a sequence or a mapping with text keys.

    Raises:
        ValueError: JSON has no word for it (NaN, infinity, another type), or it is too deep; one line.
    """
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return b'"%b"' % value.encode()  # alone, plain text stays as it is, <>& included
    return _spell(value, MOST_NESTED).encode("utf-8", "replace")


def _spell(value: Any, deeper: int) -> str:
    if value is None or isinstance(value, bool | int):
        return json.dumps(value)
    if isinstance(value, float):
        return _spell_float(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).translate(_FOR_PAGES)
    if not deeper:
        raise ValueError(f"more than {MOST_NESTED} levels deep")
    if isinstance(value, Mapping):
        pairs = (f"{_spell(key, deeper)}:{_spell(value[key], deeper - 1)}" for key in sorted(value))
        return f"{{{','.join(pairs)}}}"
    if isinstance(value, Sequence):
        return f"[{','.join(_spell(item, deeper - 1) for item in value)}]"
    raise ValueError(f"a {type(value).__name__} has no JSON form")


def _spell_float(value: float) -> str:
    """Return the shortest digits that read back as the same float: `1`, not `1.0`."""
    if not math.isfinite(value):
        raise ValueError(f"{value} has no JSON form")
    shortest = repr(value)
    if value == 0 or _SMALLEST_FIXED <= abs(value) < _LARGEST_FIXED:
        return format(Decimal(shortest), "f").removesuffix(".0")
    return shortest.replace("e-0", "e-")
