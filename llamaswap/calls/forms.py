"""Find the `model` field of a form: urlencoded, multipart, or in the query."""

from __future__ import annotations

from collections.abc import Iterator
from email.message import Message
from itertools import islice
from urllib.parse import parse_qsl

MOST_PARTS = 1000
"""Parts of a multipart form that are looked at: each costs a few dozen microseconds, and others wait."""


def form_field(body: bytes, name: str) -> str | None:
    """Return the first value of an urlencoded body's field, '' when absent.

    One bad pair spoils the whole form: None then, as in llama-swap.
    """
    if not all(_readable(pair) for pair in body.split(b"&")):
        return None
    return query_field(body, name)


def query_field(query: bytes | None, name: str) -> str:
    """Return the first value of a query's field, '' when absent; bad pairs are passed over."""
    for pair in (query or b"").split(b"&"):
        if not _readable(pair):
            continue
        text = pair.decode("utf-8", "replace")
        for key, value in parse_qsl(text, keep_blank_values=True):
            if key == name:
                return value
    return ""


def multipart_field(content_type: str, body: bytes, name: str) -> str:
    """Return the first value of a multipart form's field, '' when absent or not readable."""
    for start, end in multipart_places(content_type, body, name):
        return body[start:end].decode("utf-8", "replace")
    return ""


def multipart_places(content_type: str, body: bytes, name: str) -> Iterator[tuple[int, int]]:
    """Yield where each value of a multipart form's field begins and ends; files are no values."""
    boundary = _parameter("content-type", content_type, "boundary")
    if not boundary:
        return
    parts = _parts(body, b"--" + boundary.encode("utf-8", "replace"))
    for head_start, head_end, end in islice(parts, MOST_PARTS):
        disposition = _field(body[head_start:head_end], "content-disposition")
        if _parameter("content-disposition", disposition, "name") != name:
            continue
        if _parameter("content-disposition", disposition, "filename") is None:
            yield head_end + 4, end


def readable_pairs(query: bytes) -> list[bytes]:
    """Return the pairs of a query or urlencoded body that can be read, as they stand there."""
    return [pair for pair in query.split(b"&") if pair and _readable(pair)]


def _parts(body: bytes, delimiter: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield where each complete part begins, where its head ends, and where its content ends."""
    start = 0 if body.startswith(delimiter) else body.find(b"\r\n" + delimiter) + 2
    if start == 1:
        return
    while True:
        start += len(delimiter)
        end = body.find(b"\r\n" + delimiter, start)
        if end < 0 or body[start : start + 2] == b"--":
            return
        head_end = body.find(b"\r\n\r\n", start, end + 2)
        if head_end >= 0:
            yield start, head_end, end
        start = end + 2


def _field(head: bytes, name: str) -> str:
    """Return a header field of a part, '' when absent."""
    for line in head.decode("utf-8", "replace").split("\r\n"):
        key, colon, value = line.partition(":")
        if colon and key.strip().lower() == name:
            return value.strip()
    return ""


def _parameter(field: str, value: str, name: str) -> str | None:
    """Return a parameter such as `boundary` of a header field."""
    message = Message()
    message[field] = value.replace("\r", " ").replace("\n", " ")
    found = message.get_param(name, header=field)
    return found if isinstance(found, str) else None


def _readable(pair: bytes) -> bool:
    """Return whether Go would take this pair of a form."""
    return b";" not in pair and escapes_well(pair)


def escapes_well(pair: bytes) -> bool:
    """Return whether every % begins a two-digit hexadecimal escape."""
    hexadecimal = b"0123456789abcdefABCDEF"
    return all(
        len(rest) >= 2 and rest[0] in hexadecimal and rest[1] in hexadecimal for rest in pair.split(b"%")[1:]
    )
