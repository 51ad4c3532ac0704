"""A JSON document opened up just as far as somebody looks, everything else kept as it came.

Pure.  Knows where the members of an object are and what stands between them; what
shall become of them is `llamaswap.calls.edits`' business.

The reading is done in C: one call finds the values of an object, and the walk
over its members only has to step over them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar, Union

import msgspec

MOST_MEMBERS = 20_000
"""Members of one object or array that is opened: the walk is in Python, and others wait."""

MOST_SURROGATES = 100_000
"""Halves of characters, written as escapes, of a text that is opened although one of them is alone."""

MOST_KEYS = 1_000_000
"""Keys of a text that is opened, at any depth: each takes a microsecond, and room."""

_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_text = msgspec.json.Decoder(str).decode

# Numbers are not wanted, only the places where they end; int() refuses long ones.
_skip = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_PAIR = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F]")
_BLANKS = re.compile(rb"[ \t\r\n]*+")
_KEY = re.compile(rb'[ \t\r\n]*+("[^"\\]*+(?:\\.[^"\\]*+)*+")[ \t\r\n]*+:[ \t\r\n]*+', re.DOTALL)
_AFTER_VALUE = frozenset(b",}] \t\r\n")


class Unreadable(Exception):
    """This is not JSON, or too much of it to be opened."""


@dataclass(slots=True)
class Item:
    """One member of an object, or one element of an array."""

    lead: bytes  # from the comma before it to its value: blanks, key, colon
    value: Value
    trail: bytes = b""  # blanks up to the comma behind it
    name: str = ""  # the key


@dataclass(slots=True)
class Container:
    """An object or an array, opened."""

    opening: bytes  # the bracket, and blanks before it
    closing: bytes  # the bracket, and blanks behind it
    items: list[Item] = field(default_factory=list)
    hollow: bytes = b""  # blanks between the brackets where there is no item

    @property
    def is_array(self) -> bool:
        """Whether the items have places instead of names."""
        return self.opening.endswith(b"[")


T = TypeVar("T")

# Quoted, because a union with a class that is not there yet cannot be built at run time.
Value: TypeAlias = Union["Container", msgspec.Raw, bytes]
"""Opened, or text: as it came, or new."""


def open_value(value: Value) -> Container | None:
    """Open an object or an array; None for anything else.

    Raises:
        Unreadable: the text is broken, too deep or too long.
    """
    if isinstance(value, Container):
        return value
    text = bytes(value)
    start = _end_of_blanks(text, 0)
    bracket = text[start : start + 1]
    try:
        if bracket == b"{":
            if text.count(b'":') > MOST_KEYS:
                raise Unreadable(f"more than {MOST_KEYS} keys")
            return _open_object(text, start + 1)
        return _open_array(text, start + 1) if bracket == b"[" else None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Unreadable(str(error)) from error


def text_of(container: Container) -> bytes:
    """Return the whole text again; every byte is copied once."""
    pieces: list[bytes | memoryview] = []
    _collect(container, pieces)
    return b"".join(pieces)


def _collect(container: Container, pieces: list[bytes | memoryview]) -> None:
    pieces += (container.opening, container.hollow)
    for at, item in enumerate(container.items):
        if at:
            pieces.append(b",")
        pieces.append(item.lead)
        if isinstance(item.value, Container):
            _collect(item.value, pieces)
        else:
            pieces.append(memoryview(item.value))
        pieces.append(item.trail)
    pieces.append(container.closing)


def _open_object(text: bytes, at: int) -> Container:
    shown, values = decoded(_decode_object, text)
    opened = Container(text[:at], b"")
    if not values:
        return _hollow(opened, text, at)
    measure = _Measure(shown)
    while True:
        key = _KEY.match(shown, at)
        assert key is not None  # the document has been read as a whole
        name, start = _name(key[1]), key.end()
        end = measure.end_of(values[name], start)
        value = values[name] if measure.is_exact and shown is text else text[start:end]
        stop = _end_of_blanks(text, end)
        _add(opened, Item(text[at:start], value, text[end:stop], name))
        if text[stop] != ord(","):
            opened.closing = text[stop:]
            return opened
        at = stop + 1


def _open_array(text: bytes, at: int) -> Container:
    shown, values = decoded(_decode_array, text)
    opened = Container(text[:at], b"")
    if not values:
        return _hollow(opened, text, at)
    for value in values:
        start = _end_of_blanks(text, at)
        end = start + len(memoryview(value))
        stop = _end_of_blanks(text, end)
        _add(opened, Item(text[at:start], value if shown is text else text[start:end], text[end:stop]))
        at = stop + 1
    opened.closing = text[at - 1 :]
    return opened


def decoded(decode: Callable[[bytes], T], text: bytes) -> tuple[bytes, T]:
    """Return what a text says, and the text in which the parts of that stand where they stand in this one.

    That is another one where half of a surrogate pair is written out, which JSON allows and the reader
    does not: many clients cut a text in the middle of an emoji.
    """
    try:
        return text, decode(text)
    except msgspec.DecodeError:
        shown = _mended(text)
        if shown is None:
            raise
        return shown, decode(shown)


def _mended(text: bytes) -> bytes | None:
    """Return a text whose lone surrogates are replaced by others of their length; None if it has none."""
    if _SURROGATE.search(text) is None:
        return None
    changed = bytearray(text)
    after = 0  # the second half of a pair
    for count, match in enumerate(_SURROGATE.finditer(text)):
        if count == MOST_SURROGATES:
            return None
        at = match.start()
        if at < after or _is_escaped(text, at):
            continue
        if _PAIR.match(text, at):
            after = at + 12
        else:
            changed[at + 2 : at + 6] = b"fffd"
    return None if changed == text else bytes(changed)


def _is_escaped(text: bytes, at: int) -> bool:
    """Return whether the backslash at a place belongs to the one before it."""
    first = at
    while first and text[first - 1] == ord("\\"):
        first -= 1
    return (at - first) % 2 == 1


def _hollow(opened: Container, text: bytes, at: int) -> Container:
    end = _end_of_blanks(text, at)
    opened.hollow, opened.closing = text[at:end], text[end:]
    return opened


def _add(opened: Container, item: Item) -> None:
    if len(opened.items) == MOST_MEMBERS:
        raise Unreadable(f"more than {MOST_MEMBERS} members")
    opened.items.append(item)


def _name(key: bytes) -> str:
    return key[1:-1].decode() if b"\\" not in key else _decode_text(key)


def _end_of_blanks(text: bytes, at: int) -> int:
    match = _BLANKS.match(text, at)
    assert match is not None
    return match.end()


class _Measure:
    """Tells where values end.

    Of a key that is there twice only the last value is known, so each one is
    compared with the text before it is believed; the others are read once more.
    """

    __slots__ = ("_characters", "_text", "is_exact")

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._characters: str | None = None
        self.is_exact = True  # whether the last value asked about was the one at that place

    def end_of(self, value: msgspec.Raw, start: int) -> int:
        """Return where the value that begins at `start` ends; `value` is probably it."""
        view = memoryview(value)
        end = start + len(view)
        self.is_exact = self._text.startswith(view, start) and self._text[end] in _AFTER_VALUE
        if self.is_exact:
            return end
        if self._characters is None:
            self._characters = self._text.decode("latin-1")  # one character a byte: same places
        return _skip(self._characters, start)[1]
