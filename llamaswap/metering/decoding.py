"""Undo an answer's Content-Encoding on a copy, piece by piece and within bounds.

Knows gzip and both readings of deflate.  Other encodings are not for us: the caller takes such bytes as they
are.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Final

MOST_DECODED: Final = 64 * 1024 * 1024
_SLICE: Final = 256 * 1024

_GZIP: Final = zlib.MAX_WBITS | 16
_ZLIB: Final = zlib.MAX_WBITS
_RAW: Final = -zlib.MAX_WBITS


class BadEncoding(ValueError):
    """The bytes are not what Content-Encoding says; the text tells why."""


class TooMuch(ValueError):
    """Decoding gives more than anyone should hold: a bomb, or an answer too large to meter."""


def decoder_for(content_encoding: str) -> Decoder | None:
    """Choose by the header's value; None means that the bytes are to be taken as they are."""
    match content_encoding.strip().lower():
        case "gzip" | "x-gzip":
            return Decoder(_gzip_window, many_members=True)
        case "deflate":
            return Decoder(_deflate_window)
        case _:
            return None


class Decoder:
    """An encoded body's bytes in, decoded slices out.

    Args:
        window: chooses zlib's window bits from the first two bytes.
        many_members: whether another may follow where one ends (gzip), or only rubbish can.
        most: bytes that may come out in all.
    """

    def __init__(
        self, window: Callable[[bytes], int], *, many_members: bool = False, most: int = MOST_DECODED
    ) -> None:
        self._window = window
        self._many_members = many_members
        self._left = most
        self._head = b""
        self._member: zlib._Decompress | None = None
        self._done = False

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield what `data` adds, in slices.

        Raises:
            BadEncoding: not this encoding, or damaged.
            TooMuch: beyond the bound; decoding ends here.
        """
        more = bool(data)
        while more and not self._done:
            if self._member is None:
                data = self._head + data
                self._head = data if len(data) < 2 else b""
                if self._head:
                    return
                self._member = zlib.decompressobj(self._window(data[:2]))
            piece, data, more = self._step(self._member, data)
            yield piece

    def finish(self) -> None:
        """Check that the body was whole.

        Raises:
            BadEncoding: it ended within compressed data.
        """
        if self._member is not None or self._head:
            raise BadEncoding("unexpected end of data")

    def _step(self, member: zlib._Decompress, data: bytes) -> tuple[bytes, bytes, bool]:
        """Decode one slice; returns it, the data left, and whether there may be more in it."""
        try:
            piece = member.decompress(data, _SLICE)
        except zlib.error as error:
            raise BadEncoding(str(error)) from error
        self._left -= len(piece)
        if self._left < 0:
            raise TooMuch
        if member.eof:
            self._member = None
            self._done = not self._many_members
            return piece, member.unused_data, bool(member.unused_data)
        # A full slice may have used up the input and still have output waiting within zlib.
        return piece, member.unconsumed_tail, bool(member.unconsumed_tail) or len(piece) == _SLICE


def _gzip_window(_head: bytes) -> int:
    return _GZIP


def _deflate_window(head: bytes) -> int:
    """Tell zlib's wrapper, which the standard means, from the bare deflate that some servers send."""
    wrapped = head[0] & 0x0F == 8 and int.from_bytes(head, "big") % 31 == 0
    return _ZLIB if wrapped else _RAW
