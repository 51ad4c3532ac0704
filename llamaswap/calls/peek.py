"""Look at two keys of a JSON body, `model` and `stream`, without reading the rest.

The common body is valid and says each key once: one pass in C answers that.
Everything else goes to a scanner that is as lenient as llama-swap's: it takes
the first top-level occurrence, and a document that breaks off later still
counts, since it is the upstream's business to refuse it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import msgspec

from llamaswap.calls.document import decoded


class Peek(msgspec.Struct, frozen=True):
    """What a body says about itself."""

    model: str  # '' when it names none
    stream: bool


class _Head(msgspec.Struct):
    model: msgspec.Raw = msgspec.Raw()
    stream: msgspec.Raw = msgspec.Raw()


_decode = msgspec.json.Decoder(_Head).decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

SCAN_LIMIT = 1 << 20
"""Bytes of a broken or ambiguous body that are looked at: the scanner is slow, and others wait."""

MOST_KEYS = 250_000
"""Keys of a body whose values are told apart, at any depth: each takes a microsecond, and room."""

_PLAIN = re.compile(rb'"([ !#-\[\]-~]*)"')  # a string that says what it means
_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_OPEN = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{")  # a byte order mark does not hurt
_KEY = re.compile(rb"\s*(" + _STRING + rb")\s*:\s*", re.DOTALL)
_SCALAR = re.compile(_STRING + rb'|[^\s,{}\[\]"]+', re.DOTALL)
# A string that never ends takes the rest with it: looking for brackets behind each of its quotes would be
# quadratic.
_BRACKET = re.compile(_STRING[:-1] + rb'(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_COMMA = re.compile(rb"\s*,")
_TRUE_WORDS = frozenset({"1", "t", "T", "true", "True", "TRUE"})


def peek_json(body: bytes) -> Peek:
    """Return the top-level `model` and `stream` of a JSON object.

    A string is taken as it is, any other value as its JSON text, null as
    absent.  A body that is not an object names no model.
    """
    try:
        text, head = decoded(_decode, body)
        if _says_once(text) and (text is body or b"\\ufffd" not in bytes(head.model)):
            return Peek(_text(bytes(head.model)), _truth(bytes(head.stream)))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        pass
    found = _scan(body[:SCAN_LIMIT])
    return Peek(_text(found.get("model", b"")), _truth(found.get("stream", b"")))


def _says_once(body: bytes) -> bool:
    """Return whether a valid object is known to have no key of ours twice at its top level."""
    models, streams = body.count(b'"model"'), body.count(b'"stream"')
    if models <= 1 and streams <= 1:
        return True
    if body.count(b'":') > MOST_KEYS:
        return False  # so that it is scanned
    wanted = [key for key, count in ((b'"model"', models), (b'"stream"', streams)) if count > 1]
    values = _decode_members(body).values()
    return all(1 + sum(bytes(value).count(key) for value in values) >= body.count(key) for key in wanted)


def _text(raw: bytes) -> str:
    """Return a JSON value as llama-swap reads a model name."""
    if not raw or raw == b"null":
        return ""
    plain = _PLAIN.fullmatch(raw)
    if plain is not None:
        return plain[1].decode("ascii")
    if raw[:1] != b'"':
        return raw.decode("utf-8", "replace")
    try:
        return str(json.loads(raw))
    except ValueError:
        return ""


def _truth(raw: bytes) -> bool:
    """Return whether a JSON value switches streaming on: true, a non-zero number, or such a word."""
    if raw in (b"", b"null", b"false"):
        return False
    if raw == b"true":
        return True
    if raw[:1] == b'"':
        return _text(raw) in _TRUE_WORDS
    try:
        return float(raw) != 0
    except ValueError:
        return False


def _scan(body: bytes) -> dict[str, bytes]:
    """Return the first raw value of `model` and `stream` at the top level of a maybe broken object."""
    found: dict[str, bytes] = {}
    for key, value in _members(body):
        name = _text(key)
        if name in ("model", "stream"):
            found.setdefault(name, value)
        if len(found) == 2:
            break
    return found


def _members(body: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield key and value of an object's members, raw, up to the place where it stops being JSON."""
    opening = _OPEN.match(body)
    at = opening.end() if opening else len(body)
    while key := _KEY.match(body, at):
        end = _value_end(body, key.end())
        if end is None:
            return
        yield key[1], body[key.end() : end]
        comma = _COMMA.match(body, end)
        if comma is None:
            return
        at = comma.end()


def _value_end(body: bytes, start: int) -> int | None:
    """Return where the value that begins at `start` ends, or None if it does not."""
    if body[start : start + 1] not in (b"{", b"["):
        scalar = _SCALAR.match(body, start)
        return scalar.end() if scalar else None
    depth = 0
    for token in _BRACKET.finditer(body, start):
        if token[0] in (b"{", b"["):
            depth += 1
        elif token[0] in (b"}", b"]"):
            depth -= 1
            if not depth:
                return token.end()
    return None
