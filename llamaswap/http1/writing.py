"""Heads and chunks as the bytes that go over the wire.

Pure.  Knows how a first line and fields are written, and lets no value smuggle
in a line of its own; what they say is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Final

from llamaswap.http1.kin import LENGTH

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

CHUNK: Final = b"%x\r\n%b\r\n"
"""Filled with a number of bytes, not 0, and these bytes, it is a chunk; a call would cost more."""

LAST_CHUNK: Final = b"0\r\n\r\n"

_REASONS = {int(status): status.phrase.encode() for status in HTTPStatus}


def usual_reason(status: int) -> bytes:
    """The phrase that goes with a status, empty for an unknown one."""
    return _REASONS.get(status, b"")


def request_line(method: bytes, target: bytes) -> bytes:
    """First line of an HTTP/1.1 request, without its end.

    Raises:
        ValueError: a part holds a blank.
    """
    line = b"%b %b HTTP/1.1" % (method, target)
    if line.count(b" ") != 2:
        raise ValueError(f"blank in method or target: {line!r}")
    return line


def format_response(
    status: int, headers: Iterable[tuple[bytes, bytes]], *, reason: bytes | None = None
) -> bytes:
    """Head of an HTTP/1.1 response, blank line included.

    Args:
        reason: None takes the usual phrase of `status`; empty stays empty.

    Raises:
        ValueError: a part holds CR, LF or NUL.
    """
    phrase = _REASONS.get(status, b"") if reason is None else reason
    return format_lines(status_line(status, phrase), headers) + b"\r\n"


def status_line(status: int, reason: bytes) -> bytes:
    """First line of an HTTP/1.1 response, without its end."""
    return b"HTTP/1.1 %d %b" % (status, reason)


def format_lines(line: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A first line and the fields under it, each with its line end; the blank line is still to come.

    Raises:
        ValueError: a part holds CR, LF or NUL.
    """
    lines = [line]
    lines += [b"%b: %b" % pair for pair in headers]
    breaks = len(lines)
    lines.append(b"")
    text = b"\r\n".join(lines)
    # Counting is a cheap proof that no value smuggles in a line of its own.
    if text.count(b"\n") != breaks or text.count(b"\r") != breaks or b"\0" in text:
        raise ValueError(f"line break or NUL inside a head: {line!r}")
    return text


def format_around_length(line: bytes, headers: Sequence[tuple[bytes, bytes]]) -> tuple[bytes, bytes | None]:
    """`format_lines` in two parts: up to the number in Content-Length, and what is behind it.

    The second is None, and the first the whole, where no field is called so.
    """
    text = format_lines(line, headers)
    for at, (name, value) in enumerate(headers):
        if name.lower() == LENGTH:
            start = len(format_lines(line, headers[:at])) + len(name) + len(b": ")
            return text[:start], text[start + len(value) :]
    return text, None
