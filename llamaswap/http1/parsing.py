"""Bytes to heads, and nothing let through that two parsers could read in two ways.

Pure.  httptools parses one complete head at a time; `HeadBuffer` finds it, and
what httptools tolerates or leaves open (blanks in the request line, versions,
Host, codings before ``chunked``) is decided here.
"""

from __future__ import annotations

import re

import httptools

from llamaswap.http1.heads import Headers, RequestHead, ResponseHead, Version
from llamaswap.http1.kin import LENGTH, Head, Kin

MOST_FIELDS = 1000
"""Of one head: a field of three bytes takes a hundred in memory, for as long as its request waits."""

FIELD_LINE = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t -~\x80-\xff]*\r\n")

# A line end that is not CRLF, or NUL: this will never be a head, however
# long one waits for the blank line.
_NEVER_A_HEAD = re.compile(rb"(?<!\r)\n|\r[^\n]|\0")

_VERSIONS: dict[bytes, Version] = {b"HTTP/1.1": (1, 1), b"HTTP/1.0": (1, 0)}
_HOST = re.compile(rb"[A-Za-z0-9\-._~%!$&'()*+,;=:\[\]]*")
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
_STATUS = re.compile(rb"[1-9][0-9][0-9]")


class Malformed(Exception):
    """The other side does not speak HTTP as we need it; `status` is the answer it deserves."""

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


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
        if not self._held and data[:1] != b"\r":
            end = data.find(b"\r\n\r\n") + 4
            if 4 <= end <= self._limit:  # as nearly every head comes: in one piece
                return data[:end], data[end:]
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
        self.pairs.append((name, value))


def parse_request(raw: bytes) -> RequestHead:
    """Read one complete request head.

    Raises:
        Malformed: with the status to answer.
    """
    end = raw.index(b"\r\n")
    line = raw[:end]
    if not line.isascii():
        # curl and others send a path as it was typed; escaped, it can be read in one way only.
        line = _BEYOND_ASCII.sub(lambda byte: b"%%%02X" % ord(byte[0]), line)
        raw = line + raw[end:]
    parts = line.split(b" ")
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
    headers = _headers(httptools.HttpRequestParser(fields), fields, raw)
    head = RequestHead(method, target, version, headers)
    _check_host(head.kin)
    _check_body(head)
    return head


def parse_response(raw: bytes) -> ResponseHead:
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
    headers = _headers(httptools.HttpResponseParser(fields), fields, raw)
    head = ResponseHead(int(status), reason, version, headers)
    _check_body(head)
    return head


def _headers(
    parser: httptools.HttpRequestParser | httptools.HttpResponseParser, fields: _Fields, raw: bytes
) -> Headers:
    if raw.count(b"\r\n") > MOST_FIELDS + 2:  # the first line, and the blank one
        raise Malformed("too many fields in head", 431)
    try:
        parser.feed_data(raw)
    except httptools.HttpParserUpgrade:
        pass  # its way to say that the head is complete and asks for an upgrade
    except httptools.HttpParserError as error:
        raise Malformed(str(error)) from error
    if b" \r\n" in raw or b"\t\r\n" in raw:
        return tuple((name, value.rstrip(b" \t")) for name, value in fields.pairs)
    return tuple(fields.pairs)


def _check_host(kin: Kin) -> None:
    host = kin.firsts.get(b"host")
    if host is None:
        if kin.version == (1, 1):
            raise Malformed("missing Host")
    elif b"host" in kin.repeated or _HOST.fullmatch(host) is None:
        raise Malformed("bad Host")


def _check_body(head: Head) -> None:
    """See that the body's end is told in one way only; ambiguity is an error, as everywhere here."""
    kin = head.kin
    if kin.chunked:
        if head.get(LENGTH) is not None:
            raise Malformed("both Content-Length and Transfer-Encoding")
        coding = kin.firsts[b"transfer-encoding"].lower()
        if kin.version == (1, 0) or b"transfer-encoding" in kin.repeated or coding != b"chunked":
            raise Malformed("Transfer-Encoding other than chunked")
    elif head.length is None and LENGTH in kin.firsts:
        raise Malformed("bad Content-Length")
