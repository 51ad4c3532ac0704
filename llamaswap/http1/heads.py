"""Request and response heads as values.

Pure: no transport, no clock.  Knows which fields concern one hop only; does
not know how a body is framed (`llamaswap.http1.framing`), how bytes become a
head (`llamaswap.http1.parsing`) nor how one becomes bytes (`llamaswap.http1.writing`).
"""

from __future__ import annotations

from typing_extensions import override

from llamaswap.http1.kin import Head, Headers, Kin, Version

__all__ = [
    "HOP_BY_HOP",
    "Headers",
    "RequestHead",
    "ResponseHead",
    "Version",
    "connection_tokens",
    "crossing_fields",
    "end_to_end",
    "first",
    "has_no_body",
    "upgrade_headers",
]

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


def first(headers: Headers, name: bytes) -> bytes | None:
    """Value of the first field called `name` (given in lower case)."""
    for key, value in headers:
        if key.lower() == name:
            return value
    return None


class RequestKin(Kin):
    """Requests that differ in Content-Length only."""

    __slots__ = ("expects_continue", "method", "path", "query", "target")

    def __init__(self, method: bytes, target: bytes, version: Version, headers: Headers) -> None:
        super().__init__(version, headers)
        self.method = method
        self.target = target
        absolute = target[:1] != b"/" and b"://" in target
        path, mark, query = (_origin(target) if absolute else target).partition(b"?")
        self.path = path or b"/"
        self.query = query if mark else None
        self.expects_continue = (
            b"expect" in self.firsts
            and version == (1, 1)
            and any(value.lower() == b"100-continue" for value in self.values(b"expect"))
        )


class RequestHead(Head):
    """A request line with its fields; `target` is byte for byte what was sent."""

    __slots__ = ("method", "target")

    kin: RequestKin

    def __init__(self, method: bytes, target: bytes, version: Version, headers: Headers) -> None:
        self.method = method
        self.target = target
        self.version = version
        self._headers = headers
        self.kin = RequestKin(method, target, version, headers)
        self.length_text = text = self.kin.part_from_length()
        self.length = None if text is None else int(text)

    def with_length(self, text: bytes) -> RequestHead:
        """The same head with other digits in its Content-Length."""
        head = RequestHead.__new__(RequestHead)
        head.kin = kin = self.kin
        head.method = kin.method
        head.target = kin.target
        head.version = kin.version
        head._headers = None  # noqa: SLF001 - of its own kind
        head.length_text = text
        head.length = int(text)
        return head

    @property
    def path(self) -> bytes:
        """The path as sent, percent escapes untouched; ``/`` where the target names none."""
        return self.kin.path

    @property
    def query(self) -> bytes | None:
        """What follows the first ``?``, untouched; None without one."""
        return self.kin.query

    @override
    def _parts(self) -> tuple[bytes, bytes, Version, Headers]:
        return self.method, self.target, self.version, self.headers


class ResponseKin(Kin):
    """Responses that differ in Content-Length only."""

    __slots__ = ("reason", "status")

    def __init__(self, status: int, reason: bytes, version: Version, headers: Headers) -> None:
        super().__init__(version, headers)
        self.status = status
        self.reason = reason


class ResponseHead(Head):
    """A status line with its fields."""

    __slots__ = ("reason", "status")

    kin: ResponseKin

    def __init__(self, status: int, reason: bytes, version: Version, headers: Headers) -> None:
        self.status = status
        self.reason = reason
        self.version = version
        self._headers = headers
        self.kin = ResponseKin(status, reason, version, headers)
        self.length_text = text = self.kin.part_from_length()
        self.length = None if text is None else int(text)

    def with_length(self, text: bytes) -> ResponseHead:
        """The same head with other digits in its Content-Length."""
        head = ResponseHead.__new__(ResponseHead)
        head.kin = kin = self.kin
        head.status = kin.status
        head.reason = kin.reason
        head.version = kin.version
        head._headers = None  # noqa: SLF001 - of its own kind
        head.length_text = text
        head.length = int(text)
        return head

    @override
    def _parts(self) -> tuple[int, bytes, Version, Headers]:
        return self.status, self.reason, self.version, self.headers


def _origin(target: bytes) -> bytes:
    """Path and query of an absolute target, which loses its scheme and authority."""
    rest = target.partition(b"://")[2]
    start = min((at for at in (rest.find(b"/"), rest.find(b"?")) if at >= 0), default=len(rest))
    return rest[start:]


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


def crossing_fields(head: Head, without: frozenset[bytes] = HOP_BY_HOP) -> list[tuple[bytes, bytes]]:
    """`end_to_end` of a head's fields, less those called as in `without`.

    Most heads say nothing special about their connection: then the lower-case
    names that the head has already make this one quick pass.

    Args:
        without: lower-case names, those of HOP_BY_HOP among them.
    """
    kin = head.kin
    connection = kin.firsts.get(b"connection")
    plain = connection is None or (connection in _PLAIN_CONNECTION and b"connection" not in kin.repeated)
    if plain and b"te" not in kin.firsts:
        return [pair for name, pair in zip(kin.names, head.headers, strict=True) if name not in without]
    ours = without - HOP_BY_HOP  # what is left of those has its reason
    return [pair for pair in end_to_end(head.headers) if pair[0].lower() not in ours]


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
