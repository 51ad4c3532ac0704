"""Durations the way Go writes them: `1m30s`, `.5h`, `-10ms`."""

from __future__ import annotations

import re
from fractions import Fraction

_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_LONGEST = 2**63 - 1  # nanoseconds, 292 years
_MOST_CHARACTERS = 100


def parse_duration(text: str) -> int | None:
    """Nanoseconds, negative ones included; None when the text is no duration or too long a time."""
    unsigned = text[1:] if text[:1] in {"+", "-"} else text
    if unsigned == "0":
        return 0
    if not unsigned or len(unsigned) > _MOST_CHARACTERS:
        return None
    total, end = 0, 0
    while end < len(unsigned):
        part = _PART.match(unsigned, end)
        if part is None:
            return None
        total += int(
            Fraction(part[1].rstrip(".") if part[1].endswith(".") else part[1]) * _NANOSECONDS[part[2]]
        )
        end = part.end()
    if total > _LONGEST:
        return None
    return -total if text.startswith("-") else total
