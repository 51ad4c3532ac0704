"""`logTimeFormat`: the names of Go's time layouts, and what each makes of a moment.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime


def _zone(at: datetime) -> str:
    """Return the offset as RFC 3339 has it."""
    text = at.strftime("%z")
    return "Z" if text in ("", "+0000") else f"{text[:3]}:{text[3:5]}"


def _padded(at: datetime) -> str:
    return f"{at:%b} {at.day:2d} {at:%H:%M:%S}"


def _rfc3339nano(at: datetime) -> str:
    fraction = f".{at.microsecond:06d}".rstrip("0").rstrip(".")
    return f"{at:%Y-%m-%dT%H:%M:%S}{fraction}{_zone(at)}"


LAYOUTS: Mapping[str, Callable[[datetime], str]] = {
    "ansic": lambda at: f"{at:%a} {_padded(at)} {at:%Y}",
    "unixdate": lambda at: f"{at:%a} {_padded(at)} {at:%Z} {at:%Y}",
    "rubydate": lambda at: f"{at:%a %b %d %H:%M:%S %z %Y}",
    "rfc822": lambda at: f"{at:%d %b %y %H:%M %Z}",
    "rfc822z": lambda at: f"{at:%d %b %y %H:%M %z}",
    "rfc850": lambda at: f"{at:%A, %d-%b-%y %H:%M:%S %Z}",
    "rfc1123": lambda at: f"{at:%a, %d %b %Y %H:%M:%S %Z}",
    "rfc1123z": lambda at: f"{at:%a, %d %b %Y %H:%M:%S %z}",
    "rfc3339": lambda at: f"{at:%Y-%m-%dT%H:%M:%S}{_zone(at)}",
    "rfc3339nano": _rfc3339nano,
    "kitchen": lambda at: f"{at.hour % 12 or 12}:{at:%M%p}",
    "stamp": _padded,
    "stampmilli": lambda at: f"{_padded(at)}.{at.microsecond // 1000:03d}",
    "stampmicro": lambda at: f"{_padded(at)}.{at.microsecond:06d}",
    "stampnano": lambda at: f"{_padded(at)}.{at.microsecond:06d}000",
}


def layout_of(name: str) -> Callable[[datetime], str] | None:
    """Return the layout that a name stands for, in any letter case; None for no stamp."""
    return LAYOUTS.get(name.strip().lower())
