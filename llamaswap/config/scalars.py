"""What a YAML scalar means in this dialect, which is neither YAML 1.1 nor 1.2.

Knows text and tags only.  The rules are those of Go's yaml.v3: `yes` is text, `017` is
fifteen, `1:30` is text, `08` is a float.
"""

from __future__ import annotations

import base64
import re
from calendar import monthrange
from collections.abc import Callable

from llamaswap.config.nodes import Plain, Timestamp

STANDARD = "tag:yaml.org,2002:"

_INT64_MIN, _UINT64_MAX = -(2**63), 2**64 - 1
_MOST_DIGITS = 80  # of a number that can still fit 64 bits, however it is written

_WORDS: dict[str, Plain] = {
    **dict.fromkeys(["", "~", "null", "Null", "NULL"], None),
    **dict.fromkeys(["true", "True", "TRUE"], True),
    **dict.fromkeys(["false", "False", "FALSE"], False),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], float("nan")),
    **{f"{sign}{word}": float("inf") for sign in ("", "+") for word in (".inf", ".Inf", ".INF")},
    **{f"-{word}": float("-inf") for word in (".inf", ".Inf", ".INF")},
}
_BASES = {"0x": 16, "0b": 2, "0o": 8}
_INTEGER = re.compile(
    r"([-+]?)(?:(0[xX])([0-9a-fA-F]+)|(0[bB])([01]+)|(0[oO])([0-7]+)|(0)([0-7]+)|()([1-9][0-9]*|0))",
)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,]([0-9]+))?")
_ZONE = re.compile(r"Z|([-+])([0-9]{2}):([0-9]{2})")


class WrongTag(ValueError):
    """The text is nothing that its tag allows."""


def resolve(text: str) -> Plain:
    """The value of a plain scalar without a tag."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    stamp = _timestamp(text)
    if stamp is not None:
        return stamp
    number = _number(text if text.startswith(".") else text.replace("_", ""))
    return text if number is None else number


def resolve_tagged(text: str, tag: str) -> Plain:
    """The value of a scalar with an explicit tag; an unknown tag makes it text.

    Raises:
        WrongTag: `!!int x` and the like.
    """
    name = tag.removeprefix(STANDARD)
    if name == tag or name not in _TAGGED:
        return text
    return _TAGGED[name](text)


def tag_of(value: Plain) -> str:
    """The name of the standard tag that fits a resolved value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, Timestamp):
        return "timestamp"
    return type(value).__name__


def _number(text: str) -> int | float | None:
    match = _INTEGER.fullmatch(text) if len(text) <= _MOST_DIGITS else None
    if match:
        sign, *pairs = match.groups()
        prefix, digits = next((p, d) for p, d in zip(pairs[::2], pairs[1::2], strict=True) if d)
        base = 8 if prefix == "0" else _BASES.get(prefix.lower(), 10)
        value = int(sign + digits, base)
        if _INT64_MIN <= value <= _UINT64_MAX:
            return value
    if _FLOAT.fullmatch(text):
        number = float(text)
        return None if number in (float("inf"), float("-inf")) else number
    return None


def _timestamp(text: str) -> Timestamp | None:
    day = _DATE.match(text)
    if not day:
        return None
    year, month, date = (int(part) for part in day.groups())
    if not 1 <= month <= 12 or not 1 <= date <= monthrange(year or 4, month)[1]:
        return None
    clock = _clock(text[day.end() :])
    return None if clock is None else Timestamp(f"{year:04d}-{month:02d}-{date:02d}T{clock}")


def _clock(rest: str) -> str | None:
    """The part of a timestamp after its day, normalised; `rest` starts with the separator."""
    if not rest:
        return "00:00:00Z"
    time = _TIME.match(rest, 1)
    if not time or rest[0] not in "Tt ":
        return None
    zone = _zone(rest[0], rest[time.end() :])
    hour, minute, second = (int(part) for part in time.groups()[:3])
    if zone is None or hour > 23 or minute > 59 or second > 59:
        return None
    fraction = (time[4] or "")[:9].rstrip("0")
    return f"{hour:02d}:{minute:02d}:{second:02d}{'.' if fraction else ''}{fraction}{zone}"


def _zone(separator: str, text: str) -> str | None:
    if separator == " ":
        return "Z" if not text else None
    zone = _ZONE.fullmatch(text)
    if not zone or (zone[1] and (int(zone[2]) > 24 or int(zone[3]) > 59)):
        return None
    return "Z" if text in {"Z", "+00:00", "-00:00"} else text


def _only(*kinds: type) -> Callable[[str], Plain]:
    def resolved(text: str) -> Plain:
        value = resolve(text)
        if type(value) not in kinds:
            raise WrongTag(f"{text[:40]!r} is not what its tag says")
        return value

    return resolved


def _binary(text: str) -> Plain:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode("utf-8", "replace")
    except ValueError as error:
        raise WrongTag("expected base64 after !!binary") from error


def _float(text: str) -> Plain:
    value = _only(int, float)(text)
    assert isinstance(value, int | float)
    return float(value)


_TAGGED: dict[str, Callable[[str], Plain]] = {
    "str": str,
    "null": _only(type(None)),
    "bool": _only(bool),
    "int": _only(int),
    "float": _float,
    "timestamp": _only(Timestamp),
    "binary": _binary,
}
