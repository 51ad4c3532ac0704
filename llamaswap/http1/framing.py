"""Where a body ends: by length, by chunks, or by the end of the connection.

Pure.  A reader is given bytes as they came and says where in them its body
ends; it hands the decoded pieces to a sink in passing and keeps none.

httptools would decode chunks too, but it does not tell at which byte a
message ended, and both forwarding a body unchanged and finding the next
pipelined request need that byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum, auto
from typing import Final, Protocol

from llamaswap.http1.parsing import FIELD_LINE, Malformed

Sink = Callable[[bytes], object]
"""Takes decoded body bytes, never empty."""

UNFINISHED = -1

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})\r\n")
_SIZE_WITH_EXTENSION = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*;[\t -~\x80-\xff]*\r\n")
_SIZE_BEGUN = re.compile(rb"[0-9A-Fa-f]{0,15}(?:\r|[ \t]+|[ \t]*;[\t -~\x80-\xff]*\r?)?")

# A server that takes trailers for fields would be told of another end, host, way or key.
# Some of them read an underscore as a hyphen.
_NO_TRAILER = re.compile(
    rb"(?i)(?:content[-_](?:length|type|encoding|range|location)|transfer[-_]encoding|host|trailer|te|connection"
    rb"|keep[-_]alive|proxy[-_][a-z_-]+|upgrade|http2[-_]settings|expect|max[-_]forwards|range|location"
    rb"|authorization|www[-_]authenticate|cookie|set[-_]cookie|origin|access[-_]control[-_][a-z_-]+"
    rb"|via|forwarded|x[-_]forwarded[-_][a-z_-]+|x[-_]real[-_]ip"
    rb"|[!-9;-~]*(?:api[-_]key|token|secret|password)):"
)

MAX_SIZE_LINE_BYTES = 4096
MAX_TRAILER_BYTES = 65536


class Framing(Enum):
    """How the other side learns where a body ends."""

    NONE = auto()
    LENGTH = auto()
    CHUNKED = auto()
    UNTIL_CLOSE = auto()


# For code that runs for every request: looked up on its Enum, a member costs 0.1 us.
NONE: Final = Framing.NONE
LENGTH: Final = Framing.LENGTH
CHUNKED: Final = Framing.CHUNKED
UNTIL_CLOSE: Final = Framing.UNTIL_CLOSE


class BodyReader(Protocol):
    """Follows one body through the bytes of its connection."""

    size: int  # decoded bytes so far

    def feed(self, data: bytes) -> int:
        """Index in `data` just past the body's end, or UNFINISHED.

        Raises:
            Malformed: the framing is broken; the reader is of no further use.
        """


class LengthReader:
    """Counts a body down whose length is known; `length` > 0."""

    __slots__ = ("_left", "_sink", "size")

    def __init__(self, length: int, sink: Sink | None = None) -> None:
        self._left = length
        self._sink = sink
        self.size = 0

    def feed(self, data: bytes) -> int:
        """See `BodyReader.feed`."""
        have = len(data)
        left = self._left
        if have > left:
            data = data[:left]
        took = len(data)
        self.size += took
        self._left = left - took
        if self._sink is not None and took:
            self._sink(data)
        return took if took == left else UNFINISHED


class CloseReader:
    """Takes everything: the body ends with its connection."""

    __slots__ = ("_sink", "size")

    def __init__(self, sink: Sink | None = None) -> None:
        self._sink = sink
        self.size = 0

    def feed(self, data: bytes) -> int:
        """See `BodyReader.feed`; never ends."""
        self.size += len(data)
        if self._sink is not None:
            self._sink(data)
        return UNFINISHED


class ChunkedReader:
    """Walks over chunk after chunk, strict in what it takes for one."""

    __slots__ = ("_crlf", "_left", "_line", "_sink", "_trailer_bytes", "size")

    def __init__(self, sink: Sink | None = None) -> None:
        self._sink = sink
        self._left = 0  # of the present chunk's data
        self._crlf = 0  # bytes still due of the line end after that data
        self._line = b""  # a size or trailer line whose end has not come yet
        self._trailer_bytes = UNFINISHED  # read of the trailer section, once in it
        self.size = 0

    def feed(self, data: bytes) -> int:
        """See `BodyReader.feed`."""
        at, end = 0, len(data)
        if not (self._left or self._crlf or self._line or self._trailer_bytes >= 0):
            # Most reads of a stream are one whole chunk, and that needs no walk over its parts.
            plain = _SIZE.match(data)
            if plain is not None:
                start, size = plain.end(), int(plain[1], 16)
                if size and start + size + 2 == end and data.endswith(b"\r\n"):
                    self.size += size
                    if self._sink is not None:
                        self._sink(data[start:-2])
                    return UNFINISHED
        while at < end:
            if self._left:
                at = self._take_data(data, at, end)
            elif self._crlf:
                at = self._take_crlf(data, at)
            elif self._trailer_bytes >= 0:
                at, line = self._take_line(data, at, MAX_TRAILER_BYTES)
                if line is not None and self._ends_with(line):
                    return at
            else:
                at = self._take_size(data, at)
        return UNFINISHED

    def _take_data(self, data: bytes, at: int, end: int) -> int:
        stop = min(at + self._left, end)
        took = stop - at
        self._left -= took
        self.size += took
        if self._sink is not None:
            self._sink(data[at:stop])
        return stop

    def _take_crlf(self, data: bytes, at: int) -> int:
        due = b"\r\n"[-self._crlf :]
        have = data[at : at + len(due)]
        if not due.startswith(have):
            raise Malformed("chunk data does not end where its size says")
        self._crlf -= len(have)
        return at + len(have)

    def _take_size(self, data: bytes, at: int) -> int:
        plain = None if self._line else _SIZE.match(data, at)
        if plain is not None:
            self._begin_chunk(int(plain[1], 16))
            return plain.end()
        at, line = self._take_line(data, at, MAX_SIZE_LINE_BYTES)
        if line is None:
            if _SIZE_BEGUN.fullmatch(self._line) is None:
                raise Malformed("bad chunk size")
            return at
        match = _SIZE.fullmatch(line) or _SIZE_WITH_EXTENSION.fullmatch(line)
        if match is None:
            raise Malformed("bad chunk size")
        self._begin_chunk(int(match[1], 16))
        return at

    def _begin_chunk(self, size: int) -> None:
        if size:
            self._left = size
            self._crlf = 2
        else:
            self._trailer_bytes = 0

    def _take_line(self, data: bytes, at: int, limit: int) -> tuple[int, bytes | None]:
        """One line with its end, or None while that has not come."""
        stop = data.find(b"\n", at) + 1
        line = self._line + data[at : stop or len(data)]
        if len(line) > limit:
            raise Malformed("line too long in a chunked body")
        if not stop:
            self._line = line
            return len(data), None
        self._line = b""
        return stop, line

    def _ends_with(self, line: bytes) -> bool:
        """Look at one line of the trailer section; True for the blank one that ends it."""
        if line == b"\r\n":
            return True
        self._trailer_bytes += len(line)
        if (
            self._trailer_bytes > MAX_TRAILER_BYTES
            or FIELD_LINE.fullmatch(line) is None
            or _NO_TRAILER.match(line) is not None
        ):
            raise Malformed("bad trailer field")
        return False


def body_reader(framing: Framing, length: int, sink: Sink | None) -> BodyReader | None:
    """The reader for a body framed like this; None where there is no body to read."""
    if framing is Framing.CHUNKED:
        return ChunkedReader(sink)
    if framing is Framing.UNTIL_CLOSE:
        return CloseReader(sink)
    if framing is Framing.LENGTH and length:
        return LengthReader(length, sink)
    return None
