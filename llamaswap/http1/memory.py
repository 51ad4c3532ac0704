"""Heads that were read before are not read again.

A client program sends one head over and over, with another Content-Length each
time; to look it up takes a quarter of the time that reading it does, and what
was derived from it is there already (`llamaswap.http1.kin`).  Only heads that
passed every check are remembered, so that nothing gets past one.

Pure.  Does not know what is in a head, but where its Content-Length stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeVar


class Sized(Protocol):
    """What has to be known of a head."""

    length_text: bytes | None

    def with_length(self, text: bytes) -> Self:
        """The same head with other digits in its Content-Length."""


HeadT = TypeVar("HeadT", bound=Sized)

MOST_HEADS = 256
MOST_BYTES = 4096  # of one head that is remembered

# As nearly everybody writes it; a head that writes it otherwise is read anew each
# time, and one with more digits too, since not every such number is let through.
_LENGTH = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ([0-9]{1,18})\r\n")


class HeadMemory(Generic[HeadT]):
    """Reads heads, and remembers those that came twice.

    Args:
        parse: reads a complete head; raises what `read` shall raise.
        most: heads to remember; one more, and all are forgotten.
    """

    __slots__ = ("_met", "_most", "_parse", "_sized", "_unsized")

    def __init__(self, parse: Callable[[bytes], HeadT], most: int = MOST_HEADS) -> None:
        self._parse = parse
        self._most = most
        # Two, so that a head without digits in its Content-Length never passes for one with.
        self._sized: dict[bytes, HeadT] = {}
        self._unsized: dict[bytes, HeadT] = {}
        # Clients that send another head each time must not push out those that do not.
        self._met: set[int] = set()

    def read(self, raw: bytes) -> HeadT:
        """Return the head that these bytes are; with the blank line."""
        if len(raw) > MOST_BYTES:
            return self._parse(raw)
        found = _LENGTH.search(raw)
        if found is None:
            head = self._unsized.get(raw)
            return self._meet(raw, raw, None) if head is None else head
        start, stop = found.span(1)
        key = raw[:start] + raw[stop:]
        text = raw[start:stop]
        head = self._sized.get(key)
        if head is None:
            return self._meet(raw, key, text)
        if head.length_text != text:
            head = self._sized[key] = head.with_length(text)
        return head

    def _meet(self, raw: bytes, key: bytes, text: bytes | None) -> HeadT:
        """Read a head that is not remembered; from the second time on it will be."""
        head = self._parse(raw)
        met, mark = self._met, hash(key)
        if mark not in met:
            if len(met) >= 4 * self._most:
                met.clear()
            met.add(mark)
        elif head.length_text == text:
            known = self._unsized if text is None else self._sized
            if len(known) >= self._most:
                known.clear()
            known[key] = head
        return head
