"""Read the `X-LlamaSwap-Priority` header.

The number is the interface, the names are a convenience.  Anything that is
neither is *unparseable* and means 0: never an error, since one bad header must
not cost its sender the answer, let alone stop the queue.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from llamaswap.config.priorities import ANCHORS, PRIORITIES

HEADER = b"x-llamaswap-priority"

ALIASES: Mapping[bytes, int] = {name.encode(): priority for name, priority in ANCHORS.items()}

# Not int(): that takes underscores, other scripts' digits and inner blanks, and
# raises on 5000 digits.  19 digits are enough for 64 bits, leading zeros aside.
_NUMBER = re.compile(rb"([+-]?)0*([0-9]{1,19})")


@dataclass(frozen=True, slots=True)
class Priority:
    """The caller's priority, and whether it was understood."""

    value: int
    parseable: bool = True


ABSENT = Priority(0)
UNPARSEABLE = Priority(0, parseable=False)


def parse_priority(value: bytes | None) -> Priority:
    """Read the header's value; None when it is absent.

    Values are signed 64-bit integers or an alias in any letter case, with
    blanks and tabs around them ignored.  They are never clamped.
    """
    if value is None:
        return ABSENT
    text = value.strip(b" \t")
    alias = ALIASES.get(text.lower())
    if alias is not None:
        return Priority(alias)
    match = _NUMBER.fullmatch(text)
    if match is None:
        return UNPARSEABLE
    number = int(match[1] + match[2])
    return Priority(number) if number in PRIORITIES else UNPARSEABLE
