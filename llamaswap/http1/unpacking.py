"""A body whose content coding is undone piece by piece, never more at a time than asked for.

Pure.  Knows gzip and both readings of deflate; which bodies need it is decided
in `llamaswap.http1.crossing`.
"""

from __future__ import annotations

import zlib
from typing import Final

SLICE_BYTES = 65536
"""Most that comes out at a time: a few bytes in may stand for a thousand times as many."""

_GZIP: Final = zlib.MAX_WBITS | 16
_ZLIB: Final = zlib.MAX_WBITS
_RAW: Final = -zlib.MAX_WBITS

_WINDOW_BYTES: Final = 2  # it takes so many to tell the two kinds of deflate apart


class Damaged(Exception):
    """The bytes are not what Content-Encoding says; `reason` tells why in a few words."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Unpacker:
    """Coded bytes in, plain slices out.

    Args:
        coding: gzip or deflate.
    """

    __slots__ = ("_closed", "_gzip", "_input", "_member", "_more")

    def __init__(self, coding: bytes) -> None:
        self._gzip = coding == b"gzip"
        self._member: zlib._Decompress | None = None
        self._input = b""
        self._more = False  # the last slice was full: zlib may hold more without any input
        self._closed = False

    def feed(self, data: bytes) -> None:
        """Take coded bytes; what is behind the end of a deflated body counts for nothing."""
        if not self._closed:
            self._input += data

    def take(self) -> bytes:
        """The next slice, at most SLICE_BYTES; empty when that needs more input.

        Raises:
            Damaged: nothing more can be had.
        """
        while self._input or self._more:
            if self._member is None:
                if len(self._input) < _WINDOW_BYTES:
                    break
                self._member = zlib.decompressobj(self._window())
            piece = self._step(self._member)
            if piece:
                return piece
        return b""

    @property
    def whole(self) -> bool:
        """Whether what was fed and taken is a complete body; an empty one is."""
        return self._member is None and not self._input

    def _step(self, member: zlib._Decompress) -> bytes:
        try:
            piece = member.decompress(self._input, SLICE_BYTES)
        except zlib.error as error:
            raise Damaged(str(error)) from error
        self._input = member.unconsumed_tail
        self._more = len(piece) == SLICE_BYTES
        if member.eof:
            # Behind a gzip member another may follow.
            self._input = member.unused_data if self._gzip else b""
            self._closed = not self._gzip
            self._member = None
            self._more = False
        return piece

    def _window(self) -> int:
        if self._gzip:
            return _GZIP
        # The standard means zlib's wrapper; some servers send the bare data.
        begin = self._input[:_WINDOW_BYTES]
        wrapped = begin[0] & 0x0F == 8 and int.from_bytes(begin, "big") % 31 == 0
        return _ZLIB if wrapped else _RAW
