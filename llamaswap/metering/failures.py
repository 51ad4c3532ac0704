"""The one line that a failed answer leaves in the activity list.

Pure: from a status and a bounded prefix of a body to a text.  Who refused, and why, is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Final

import msgspec

LONGEST_MESSAGE: Final = 500  # bytes of UTF-8

# Where llama-swap's wording differs from the standard library's.
_PHRASES: Final = {414: "Request URI Too Long", 418: "I'm a teapot"}


class _Failure(msgspec.Struct):
    error: Any = None
    message: Any = None
    detail: Any = None


_failure: Final = msgspec.json.Decoder(_Failure)


def failure_text(status: int, body: bytes) -> str:
    """Say what went wrong: the body's own words if it is JSON that has some, else the status line's."""
    try:
        failure = _failure.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return _status_text(status)
    for words in _candidates(failure):
        if isinstance(words, str) and words.strip():
            return _shortened(words.strip())
    return _status_text(status)


def _candidates(failure: _Failure) -> Iterator[object]:
    if isinstance(failure.error, dict):
        yield failure.error.get("message")
    yield failure.error
    yield failure.message
    yield failure.detail


def _status_text(status: int) -> str:
    phrase = _PHRASES.get(status)
    if phrase is None and status in HTTPStatus._value2member_map_:
        phrase = HTTPStatus(status).phrase
    return f"{status} {phrase}" if phrase else f"HTTP {status}"


def _shortened(text: str) -> str:
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= LONGEST_MESSAGE:
        return text
    return encoded[:LONGEST_MESSAGE].decode("utf-8", "ignore") + "..."
