"""Durations the way Go writes them: `1m30s`, `.5h`, `-10ms`; in keys of our own, numbers of seconds, too."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from llamaswap.config.mistakes import Report
from llamaswap.config.nodes import Node, Plain, Scalar, Timestamp, describe

WAIT: Final = r"^\+?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
"""What a text must look like to be a duration that is not negative; for the schema."""

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


def duration_text(seconds: float) -> str:
    """A time as Go writes it, to the microsecond: `87µs`, `12.5ms`, `1m30.25s`; nothing is below 0."""
    micros = max(0, round(seconds * 1_000_000))
    if micros == 0:
        return "0s"
    if micros < 1_000:
        return f"{micros}µs"
    if micros < 1_000_000:
        return f"{_decimal(micros, 1_000)}ms"
    minutes, rest = divmod(micros, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, 1_000_000)}s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text


def seconds_of(node: Node, path: str, report: Report) -> float | None:
    """Seconds, from 0, as a duration or as a number; None for null, and after a complaint."""
    value = node.value if isinstance(node, Scalar) else ""
    if value is None:
        return None
    seconds = _seconds(value)
    if seconds is None or not 0 <= seconds <= _LONGEST / _NANOSECONDS["s"]:
        report.wrong(
            node.place, path, f"expected seconds from 0 or a duration like 30s, got {describe(node)}"
        )
        return None
    return seconds


def _seconds(value: Plain) -> float | None:
    if value is None or isinstance(value, bool | Timestamp):
        return None
    if isinstance(value, str):
        nanoseconds = parse_duration(value)
        return None if nanoseconds is None else nanoseconds / _NANOSECONDS["s"]
    return float(value)


def _decimal(count: int, unit: int) -> str:
    """count/unit exactly, without zeros at its end."""
    whole, part = divmod(count, unit)
    digits = str(unit + part)[1:].rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
