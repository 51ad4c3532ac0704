"""One line of a trace, understood but not yet placed on a box; and what is wrong with one that is not.

Pure.  Every format's reader makes these; which model, band and duration they come to is `mapping`'s business.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

NOTHING: Mapping[str, str] = MappingProxyType({})
"""The fields of a format that has no further words about a request."""

MOST_TOKENS = 10**9


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A request as its trace tells of it; None and '' where the trace does not say."""

    at: float  # seconds, of any clock; only differences within one trace mean something
    model: str = ""  # the trace's own word
    priority: int | None = None
    run: float | None = None  # seconds without the load
    prompt: int | None = None  # tokens
    generated: int | None = None  # tokens
    user: str = ""
    cancel_after: float | None = None  # seconds
    fields: Mapping[str, str] = NOTHING  # every column by its title, where the format has telling ones


class BadLine(ValueError):
    """One line makes no sense; the text says why, the reader of the file says where."""


class Unusable(Exception):
    """A trace, a mapping, a setting or a picture can't be used.

    `str()` is one line for a person, or several; the file and place come first where there are some.
    """


def number(text: str, name: str) -> float:
    """Read a finite number that is not negative; BadLine if it is none."""
    try:
        value = float(text)
    except ValueError:
        raise BadLine(f"{name}: expected a number, got {shown(text)}") from None
    if not 0 <= value < math.inf:
        raise BadLine(f"{name}: expected a number from 0, got {shown(text)}")
    return value


def tokens(text: str, name: str) -> int:
    """Read a count of tokens; BadLine if it is none."""
    value = number(text, name)
    if value > MOST_TOKENS:
        raise BadLine(f"{name}: {shown(text)} tokens are no request")
    return int(value)


def shown(text: str) -> str:
    """A text as a complaint quotes it."""
    return repr(text if len(text) <= 40 else f"{text[:37]}...")
