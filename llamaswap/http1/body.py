"""One request body: collected as it comes, kept once, ready to be sent on unchanged.

Pure.  Does not know who sends it or who wants it.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

from llamaswap.http1.framing import BodyReader, ChunkedReader, Framing, body_reader
from llamaswap.http1.parsing import Malformed

MOST_BODY_BYTES = 1 << 30
"""What one request may claim of the memory: hours of sound fit, somebody's whole disk does not."""


class Body:
    """A complete request body.

    Args:
        framing: NONE, LENGTH or CHUNKED.
        pieces: without framing; None where they have to be found in the wire.
        wire: as it was framed.
        size: bytes without framing.
    """

    __slots__ = ("_pieces", "_wire", "framing", "size")

    def __init__(
        self, framing: Framing, pieces: Sequence[bytes] | None, wire: Sequence[bytes], size: int
    ) -> None:
        self.framing = framing
        self.size = size
        self._pieces = pieces
        self._wire = wire

    @property
    def decoded(self) -> bytes:
        """The body without its framing, made once; of a chunked one that is a second copy."""
        if self._pieces is None:
            self._pieces = [_without_chunks(self._wire)]
        elif len(self._pieces) != 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]

    @property
    def wire(self) -> Sequence[bytes]:
        """The body exactly as it was framed when it came: sizes, extensions and trailers."""
        return self._wire


class Intake:
    """Collects the body of one request.

    Args:
        length: announced; 0 when chunked.
        most: bytes it may hold, framing included.

    Raises:
        Malformed: more was announced (413).
    """

    __slots__ = ("_framing", "_most", "_only", "_reader", "_store", "complete", "held_bytes")

    def __init__(self, framing: Framing, length: int, most: int = MOST_BODY_BYTES) -> None:
        self._framing = framing
        self._most = most
        self._reader: BodyReader | None = body_reader(framing, length, None)
        self._only = b""  # most bodies come in one piece, which is kept as it is
        # Grows in place: a list of pieces would be in memory twice while it is joined.
        self._store: BytesIO | None = None
        self.complete = self._reader is None
        self.held_bytes = 0  # as they came, framing included
        self._check(length)

    def feed(self, data: bytes) -> bytes:
        """Take what belongs to the body; returns what came behind its end.

        Raises:
            Malformed: the chunk framing is broken, or it is too much (413).
        """
        if self._reader is None:
            return data
        end = self._reader.feed(data)
        rest = b""
        if end >= 0:
            data, rest = data[:end], data[end:]
        self._check(self.held_bytes + len(data))
        self.complete = end >= 0
        self.held_bytes += len(data)
        self._keep(data)
        return rest

    def body(self) -> Body:
        """The body, once it is complete."""
        if self._store is not None:
            self._only, self._store = self._store.getvalue(), None
        size = 0 if self._reader is None else self._reader.size
        wire = [self._only] if self._only else []
        return Body(self._framing, None if self._framing is Framing.CHUNKED else wire, wire, size)

    def _keep(self, data: bytes) -> None:
        if self._store is None:
            if not self._only:
                self._only = data
                return
            self._store = BytesIO()
            self._store.write(self._only)
            self._only = b""
        self._store.write(data)

    def _check(self, size: int) -> None:
        if size > self._most:
            raise Malformed("request body too large", 413)


def _without_chunks(wire: Sequence[bytes]) -> bytes:
    bare = BytesIO()
    reader = ChunkedReader(bare.write)
    for piece in wire:
        reader.feed(piece)
    return bare.getvalue()
