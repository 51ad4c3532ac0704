"""Find the `model` field of a form: urlencoded, multipart, or in the query."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.utils import unquote
from urllib.parse import parse_qsl

MOST_PARTS = 1000
"""Parts of a multipart form that are looked at: each costs some microseconds, and others wait."""

MOST_PART_HEAD_BYTES = 4096
"""Of the fields of one part; a part that has more is passed over."""

MOST_FORM_BYTES = 10 << 20
"""Of an urlencoded body that is read, as in Go."""

MOST_PAIRS = 10_000
"""Pairs of an urlencoded body that is read."""

MOST_PAIR_BYTES = 65536
"""Of the pair that is asked for; a longer one means nothing that is configured."""

_UNREADABLE = re.compile(rb";|%(?![0-9A-Fa-f]{2})")
_DISPOSITION = re.compile(rb"\r\n[ \t]*content-disposition[ \t]*:([^\r\n]*)", re.IGNORECASE)
# One parameter of a field, quotes and all.  Possessive, so that each byte is looked at once.
_PARAMETER = re.compile(r'(?:[^;"]++|"(?:[^"\\]++|\\.)*+(?:"|\\?\Z))++', re.DOTALL)


def form_field(body: bytes, name: str) -> str | None:
    """Return the first value of an urlencoded body's field, '' when absent.

    One bad pair spoils the whole form: None then, as in llama-swap, and for a form that is too large.
    """
    if len(body) > MOST_FORM_BYTES or body.count(b"&") >= MOST_PAIRS or not _readable(body):
        return None
    return query_field(body, name)


def query_field(query: bytes | None, name: str) -> str:
    """Return the first value of a query's field, '' when absent; bad pairs are passed over."""
    plain = name.encode()
    for pair in (query or b"").split(b"&"):
        said = pair.partition(b"=")[0]
        if (said != plain and b"%" not in said and b"+" not in said) or not _readable(pair):
            continue
        text = pair[:MOST_PAIR_BYTES].decode("utf-8", "replace")
        for key, value in parse_qsl(text, keep_blank_values=True):
            if key == name:
                return value
    return ""


def query_pairs(query: bytes | None) -> list[tuple[str, str]]:
    """Return all pairs of a query, bad ones as well as they can be read."""
    return parse_qsl((query or b"").decode("utf-8", "replace"), keep_blank_values=True)


def multipart_field(content_type: str, body: bytes, name: str) -> str:
    """Return the first value of a multipart form's field, '' when absent or not readable."""
    for start, end in multipart_places(content_type, body, name):
        return body[start:end].decode("utf-8", "replace")
    return ""


def multipart_places(content_type: str, body: bytes, name: str) -> Iterator[tuple[int, int]]:
    """Yield where each value of a multipart form's field begins and ends; files are no values."""
    boundary = _parameters(content_type).get("boundary")
    if not boundary:
        return
    for head_start, head_end, end in _parts(body, b"--" + boundary.encode("utf-8", "replace")):
        disposition = _DISPOSITION.search(body, head_start, head_end)
        if disposition is None:
            continue
        said = _parameters(disposition[1].decode("utf-8", "replace"))
        if said.get("name") == name and not any(key.partition("*")[0] == "filename" for key in said):
            yield head_end + 4, end


def readable_pairs(query: bytes) -> list[bytes]:
    """Return the pairs of a query or urlencoded body that can be read, as they stand there."""
    return [pair for pair in query.split(b"&") if pair and _readable(pair)]


def _parts(body: bytes, delimiter: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield where each complete part begins, where its head ends, and where its content ends."""
    start = 0 if body.startswith(delimiter) else body.find(b"\r\n" + delimiter) + 2
    if start == 1:
        return
    for _ in range(MOST_PARTS):
        start += len(delimiter)
        end = body.find(b"\r\n" + delimiter, start)
        if end < 0 or body[start : start + 2] == b"--":
            return
        head_end = body.find(b"\r\n\r\n", start, min(end + 2, start + MOST_PART_HEAD_BYTES))
        if head_end >= 0:
            yield start, head_end, end
        start = end + 2


def _parameters(value: str) -> dict[str, str]:
    """Return the parameters of a header field by their lower-case names; of several, the first counts.

    Takes time linear in the value, whoever has written it.
    """
    found: dict[str, str] = {}
    for parameter in _PARAMETER.findall(value):
        key, _, text = parameter.partition("=")
        found.setdefault(key.strip().lower(), unquote(text.strip()))
    return found


def _readable(pair: bytes) -> bool:
    """Return whether Go would take this pair of a form: no semicolon, and each % begins an escape."""
    return _UNREADABLE.search(pair) is None
