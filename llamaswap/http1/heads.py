"""Request and response heads as values, and as the bytes that stand for them.

Pure: no transport, no clock.  Knows which fields concern one hop only; does
not know how a body is framed (`llamaswap.http1.framing`) nor how bytes become
a head (`llamaswap.http1.parsing`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus

Headers = tuple[tuple[bytes, bytes], ...]
"""Fields in the order and case they came in; values without surrounding blanks."""

Version = tuple[int, int]

HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"proxy-connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)

# A sender must not be able to take these away by naming them in Connection:
# the first decides who answers, the second where the body ends.
_NEVER_LISTED = frozenset({b"host", b"content-length"})

_PLAIN_CONNECTION = frozenset({b"keep-alive", b"close", b"Keep-Alive", b"Close"})

_REASONS = {int(status): status.phrase.encode() for status in HTTPStatus}


def first(headers: Headers, name: bytes) -> bytes | None:
    """Value of the first field called `name` (given in lower case)."""
    for key, value in headers:
        if key.lower() == name:
            return value
    return None


@dataclass(frozen=True, slots=True)
class RequestHead:
    """A request line with its fields; `target` is byte for byte what was sent."""

    method: bytes
    target: bytes
    version: Version
    headers: Headers

    def get(self, name: bytes) -> bytes | None:
        """Value of the first field called `name` (given in lower case)."""
        return first(self.headers, name)

    @property
    def path(self) -> bytes:
        """The path as sent, percent escapes untouched; ``/`` where the target names none."""
        return _origin(self.target).partition(b"?")[0] or b"/"

    @property
    def query(self) -> bytes | None:
        """What follows the first ``?``, untouched; None without one."""
        _, mark, query = self.target.partition(b"?")
        return query if mark else None


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """A status line with its fields."""

    status: int
    reason: bytes
    version: Version
    headers: Headers

    def get(self, name: bytes) -> bytes | None:
        """Value of the first field called `name` (given in lower case)."""
        return first(self.headers, name)


def _origin(target: bytes) -> bytes:
    """Path and query of a target; an absolute one loses its scheme and authority."""
    if target[:1] == b"/" or b"://" not in target:
        return target
    rest = target.partition(b"://")[2]
    start = min((at for at in (rest.find(b"/"), rest.find(b"?")) if at >= 0), default=len(rest))
    return rest[start:]


def usual_reason(status: int) -> bytes:
    """The phrase that goes with a status, empty for an unknown one."""
    return _REASONS.get(status, b"")


def has_no_body(status: int) -> bool:
    """Whether a response with this status never has a body."""
    return status < 200 or status in (204, 304)


def connection_tokens(headers: Headers) -> frozenset[bytes]:
    """Everything that the Connection fields list, in lower case."""
    return frozenset(
        token.strip()
        for name, value in headers
        if name.lower() == b"connection"
        for token in value.lower().split(b",")
    )


def end_to_end(headers: Headers) -> Headers:
    """Drop the fields that concern one hop only, and those that Connection lists.

    ``TE`` survives as ``TE: trailers`` where it said so.  Order and case stay.
    """
    kept = []
    for pair in headers:
        name = pair[0].lower()
        if name not in HOP_BY_HOP:
            kept.append(pair)
        elif name == b"te" and b"trailers" in _tokens(pair[1]):
            kept.append((pair[0], b"trailers"))
        elif name == b"connection" and pair[1] not in _PLAIN_CONNECTION:
            return _without_listed(headers)
    return tuple(kept)


def _without_listed(headers: Headers) -> Headers:
    dropped = (connection_tokens(headers) - _NEVER_LISTED | HOP_BY_HOP) - {b"te"}
    return tuple(
        (name, b"trailers") if name.lower() == b"te" else (name, value)
        for name, value in headers
        if name.lower() not in dropped and (name.lower() != b"te" or b"trailers" in _tokens(value))
    )


def _tokens(value: bytes) -> list[bytes]:
    return [token.partition(b";")[0].strip() for token in value.lower().split(b",")]


def upgrade_headers(headers: Headers) -> Headers:
    """The two fields that carry an upgrade over this hop; empty when none is asked for."""
    wanted = first(headers, b"upgrade")
    if wanted is None or b"upgrade" not in connection_tokens(headers):
        return ()
    return ((b"Connection", b"Upgrade"), (b"Upgrade", wanted))


def format_request(method: bytes, target: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Head of an HTTP/1.1 request, blank line included.

    Raises:
        ValueError: a part holds CR, LF or NUL, or the request line a blank too many.
    """
    line = b"%b %b HTTP/1.1" % (method, target)
    if line.count(b" ") != 2:
        raise ValueError(f"blank in method or target: {line!r}")
    return _format(line, headers)


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
    return _format(b"HTTP/1.1 %d %b" % (status, phrase), headers)


def _format(line: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    lines = [line]
    lines += [b"%b: %b" % pair for pair in headers]
    breaks = len(lines) + 1
    lines += (b"", b"")
    head = b"\r\n".join(lines)
    # Counting is a cheap proof that no value smuggles in a line of its own.
    if head.count(b"\n") != breaks or head.count(b"\r") != breaks or b"\0" in head:
        raise ValueError(f"line break or NUL inside a head: {line!r}")
    return head
