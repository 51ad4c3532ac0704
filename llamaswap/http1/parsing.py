"""Bytes to heads, and nothing let through that two parsers could read in two ways.

Pure.  httptools parses one complete head at a time; `HeadBuffer` finds it, and
what httptools tolerates or leaves open (blanks in the request line, versions,
Host, codings before ``chunked``) is decided here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import httptools

from llamaswap.http1.heads import Headers, RequestHead, ResponseHead, Version

FIELD_LINE = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t -~\x80-\xff]*\r\n")

# A line end that is not CRLF, or NUL: this will never be a head, however
# long one waits for the blank line.
_NEVER_A_HEAD = re.compile(rb"(?<!\r)\n|\r[^\n]|\0")

_VERSIONS: dict[bytes, Version] = {b"HTTP/1.1": (1, 1), b"HTTP/1.0": (1, 0)}
_HOST = re.compile(rb"[A-Za-z0-9\-._~%!$&'()*+,;=:\[\]]*")
_STATUS = re.compile(rb"[1-9][0-9][0-9]")
_CHECKED = frozenset({b"host", b"content-length", b"transfer-encoding", b"connection", b"expect"})
_CHECKED_IN_RESPONSES = frozenset({b"content-length", b"transfer-encoding", b"connection"})


class Malformed(Exception):
    """The other side does not speak HTTP as we need it; `status` is the answer it deserves."""

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class ParsedRequest(NamedTuple):
    """A head, and what it says about its connection."""

    head: RequestHead
    chunked: bool
    length: int  # bytes of body; 0 without one, and when chunked
    keep_alive: bool
    expects_continue: bool


class ParsedResponse(NamedTuple):
    """A head, and what it says about its connection."""

    head: ResponseHead
    chunked: bool
    length: int | None  # bytes of body; None where no field says so
    keep_alive: bool


class HeadBuffer:
    """Collects bytes until a head is complete, whatever pieces it comes in."""

    __slots__ = ("_held", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit  # bytes of one head
        self._held = bytearray()

    @property
    def begun(self) -> bool:
        """Whether part of a head has come."""
        return bool(self._held)

    def feed(self, data: bytes) -> tuple[bytes, bytes] | None:
        """A complete head with its blank line, and what came behind it; None while incomplete.

        Blank lines before the head are passed over.

        Raises:
            Malformed: too long (431), or a line end that no head can have (400).
        """
        window: bytes | bytearray = data
        searched = 0
        if self._held:
            # Only the new bytes are searched, or a head sent byte by byte would cost its square.
            searched = max(0, len(self._held) - 3)
            self._held += data
            window = self._held
        while window.startswith(b"\r\n"):
            window, searched = window[2:], 0
        end = window.find(b"\r\n\r\n", searched) + 4
        if (end if end >= 4 else len(window)) > self._limit:
            raise Malformed("head too long", 431)
        if end < 4:
            if _NEVER_A_HEAD.search(window, searched) is not None:
                raise Malformed("bad line end in head")
            if window is not self._held:
                self._held[:] = window
            return None
        head, rest = bytes(window[:end]), bytes(window[end:])
        self._held.clear()
        return head, rest


class _Fields:
    """Takes httptools' callbacks for one head."""

    __slots__ = ("pairs",)

    def __init__(self) -> None:
        self.pairs: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.pairs.append((name, value.rstrip(b" \t")))


def parse_request(raw: bytes) -> ParsedRequest:
    """Read one complete request head.

    Raises:
        Malformed: with the status to answer.
    """
    parts = raw[: raw.index(b"\r\n")].split(b" ")
    if len(parts) != 3:
        raise Malformed("bad request line")
    method, target, version_text = parts
    version = _VERSIONS.get(version_text)
    if version is None:
        raise Malformed("HTTP version not supported", 505 if version_text.startswith(b"HTTP/") else 400)
    if method == b"CONNECT":
        raise Malformed("CONNECT is not served here", 405)
    if target[:1] not in b"/*" and b"://" not in target:
        raise Malformed("bad request target")
    fields = _Fields()
    _feed(httptools.HttpRequestParser(fields), raw)
    headers = tuple(fields.pairs)
    found = _pick(headers, _CHECKED)
    _check_host(found.get(b"host"), version)
    chunked, length = _body_of(found, version)
    return ParsedRequest(
        RequestHead(method, target, version, headers),
        chunked,
        length or 0,
        _keeps_alive(found.get(b"connection"), version),
        version == (1, 1) and any(v.lower() == b"100-continue" for v in found.get(b"expect", ())),
    )


def parse_response(raw: bytes) -> ParsedResponse:
    """Read one complete response head.

    Raises:
        Malformed: the upstream's head cannot be trusted.
    """
    version_text, _, rest = raw[: raw.index(b"\r\n")].partition(b" ")
    status, _, reason = rest.partition(b" ")
    version = _VERSIONS.get(version_text)
    if version is None or _STATUS.fullmatch(status) is None:
        raise Malformed("bad status line")
    fields = _Fields()
    _feed(httptools.HttpResponseParser(fields), raw)
    headers = tuple(fields.pairs)
    found = _pick(headers, _CHECKED_IN_RESPONSES)
    chunked, length = _body_of(found, version)
    return ParsedResponse(
        ResponseHead(int(status), reason, version, headers),
        chunked,
        length,
        _keeps_alive(found.get(b"connection"), version),
    )


def _feed(parser: httptools.HttpRequestParser | httptools.HttpResponseParser, raw: bytes) -> None:
    try:
        parser.feed_data(raw)
    except httptools.HttpParserUpgrade:
        pass  # its way to say that the head is complete and asks for an upgrade
    except httptools.HttpParserError as error:
        raise Malformed(str(error)) from error


def _pick(headers: Headers, names: frozenset[bytes]) -> dict[bytes, list[bytes]]:
    """Values of the fields in `names`, by lower-case name."""
    found: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        key = name.lower()
        if key in names:
            found.setdefault(key, []).append(value)
    return found


def _check_host(hosts: list[bytes] | None, version: Version) -> None:
    if hosts is None:
        if version == (1, 1):
            raise Malformed("missing Host")
    elif len(hosts) > 1 or _HOST.fullmatch(hosts[0]) is None:
        raise Malformed("bad Host")


def _body_of(found: dict[bytes, list[bytes]], version: Version) -> tuple[bool, int | None]:
    """Whether the body is chunked, and its length; ambiguity is an error, as everywhere here."""
    codings = found.get(b"transfer-encoding")
    lengths = found.get(b"content-length")
    if codings is not None:
        if lengths is not None:
            raise Malformed("both Content-Length and Transfer-Encoding")
        if version == (1, 0) or len(codings) > 1 or codings[0].lower() != b"chunked":
            raise Malformed("Transfer-Encoding other than chunked")
        return True, None
    if lengths is None:
        return False, None
    if len(lengths) > 1 or not lengths[0].isdigit():
        raise Malformed("bad Content-Length")
    return False, int(lengths[0])


def _keeps_alive(connection: list[bytes] | None, version: Version) -> bool:
    if connection is None:
        return version == (1, 1)
    tokens = [token.strip() for value in connection for token in value.lower().split(b",")]
    if b"close" in tokens:
        return False
    return version == (1, 1) or b"keep-alive" in tokens
