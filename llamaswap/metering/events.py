"""Find the payloads worth reading in an event stream, however its bytes are cut.

Knows lines and ``data:``; does not know JSON, nor what a payload means.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

LONGEST_LINE: Final = 8 * 1024 * 1024

# One search stands between a token chunk and the next: 250 ns for 200 bytes, where three `in` tests take 500.
_worth_reading: Final = re.compile(rb'"(?:usage|timings|metrics)"').search


class EventSplitter:
    """Hands on each ``data:`` payload that names a report, and holds at most one unfinished line.

    Lines end with LF or CRLF.  A line above `longest` bytes is skipped, not stored.
    """

    def __init__(self, payload: Callable[[bytes], None], longest: int = LONGEST_LINE) -> None:
        self._payload = payload
        self._longest = longest
        self._pieces: list[bytes] = []
        self._held_bytes = 0
        self._skipping = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        # Almost every chunk is whole lines with nothing to read in them.
        if not self._pieces and not self._skipping and data.endswith(b"\n"):
            if _worth_reading(data):
                self._lines(data)
            return
        self._feed_pieces(data)

    def finish(self) -> None:
        """Take what came after the last line end for a line."""
        rest, self._pieces, self._held_bytes = b"".join(self._pieces), [], 0
        if rest and _worth_reading(rest):
            self._line(rest)

    def _feed_pieces(self, data: bytes) -> None:
        first_end = data.find(b"\n") + 1
        if not first_end:
            self._hold(data)
            return
        if self._skipping:
            self._skipping = False
            whole = b""
        else:
            whole = b"".join((*self._pieces, data[:first_end]))
        last_end = data.rfind(b"\n") + 1
        self._pieces, self._held_bytes = [], 0
        for lines in (whole, data[first_end:last_end]):
            if _worth_reading(lines):
                self._lines(lines)
        self._hold(data[last_end:])

    def _hold(self, piece: bytes) -> None:
        if not piece or self._skipping:
            return
        self._pieces.append(piece)
        self._held_bytes += len(piece)
        if self._held_bytes > self._longest:
            self._pieces, self._held_bytes, self._skipping = [], 0, True

    def _lines(self, lines: bytes) -> None:
        for line in lines.split(b"\n"):
            if _worth_reading(line):
                self._line(line)

    def _line(self, line: bytes) -> None:
        if line.startswith(b"data:") and len(line) <= self._longest:
            self._payload(line[5:].strip())
