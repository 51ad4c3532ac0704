"""Moments as RFC 3339 text, to the microsecond, and back.  Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

MICROSECONDS: Final = 1_000_000

_MOMENT: Final = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", flags=re.ASCII
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class BadMoment(ValueError):
    """A text is no RFC 3339 timestamp."""


def microseconds(seconds: float) -> int:
    """Turn unix seconds into whole microseconds, which compare exactly."""
    return round(seconds * MICROSECONDS)


def write_moment(micros: int) -> str:
    """Write unix microseconds in the server's zone, ``Z`` for UTC."""
    return _text((_EPOCH + timedelta(microseconds=micros)).astimezone())


def write_utc(micros: int) -> str:
    """Write unix microseconds as a moment of universal time."""
    return _text(_EPOCH + timedelta(microseconds=micros))


def read_moment(text: str) -> int:
    """Read a timestamp as unix microseconds; finer digits are cut off.

    Raises:
        BadMoment: dates alone, times without a zone, the thirteenth month and everything else.
    """
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise BadMoment(text)
    whole, fraction, zone = found.groups()
    try:
        moment = datetime.fromisoformat(whole + zone)
    except ValueError as error:
        raise BadMoment(text) from error
    return (moment - _EPOCH) // timedelta(microseconds=1) + int(f"{fraction or ''}000000"[:6])


def _text(moment: datetime) -> str:
    text = moment.isoformat()
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text
