"""One request body: collected as it comes, kept once, ready to be sent on unchanged.

Pure.  Does not know who sends it or who wants it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import BytesIO

from llamaswap.http1.framing import CHUNKED, ChunkedReader, Framing
from llamaswap.http1.parsing import Malformed

MOST_BODY_BYTES = 1 << 30
"""What one request may claim of the memory: hours of sound fit, somebody's whole disk does not."""

MOST_CHUNKING_BYTES = 4 << 20
"""What the framing of chunks may take, beside one byte for each `CONTENT_PER_CHUNKING` of content.

A body is taken out of its chunks in one go, and each of them costs about a microsecond, however small it is.
"""

CONTENT_PER_CHUNKING = 32


class TooChopped(Malformed):
    """A body comes in chunks that are mostly framing."""

    def __init__(self) -> None:
        super().__init__("request body in too many small chunks")


class TooLarge(Malformed):
    """A body is larger than any may be."""

    def __init__(self) -> None:
        super().__init__("request body too large", 413)


class NoRoom(Malformed):
    """The bodies of all requests hold as much as they may; it may be less in a moment."""

    def __init__(self) -> None:
        super().__init__("no room for another request body now", 503)


class Room:
    """What the bodies of all requests under way hold together.

    Args:
        most: bytes, framing included.
    """

    __slots__ = ("held", "most")

    def __init__(self, most: int = sys.maxsize) -> None:
        self.most = most
        self.held = 0


_ANYWHERE = Room()  # for bodies that nobody counts, or not any more


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
        room: what all bodies share; counted as they come, not as they are announced, so
            that nobody can take it with words.

    Raises:
        TooLarge: more was announced.
        NoRoom: more was announced than there is room for now.
    """

    __slots__ = (
        "_framing",
        "_left",
        "_most",
        "_only",
        "_reader",
        "_room",
        "_store",
        "complete",
        "held_bytes",
    )

    def __init__(
        self, framing: Framing, length: int, most: int = MOST_BODY_BYTES, room: Room = _ANYWHERE
    ) -> None:
        self._framing = framing
        self._most = most
        self._room = room
        self._reader = ChunkedReader() if framing is CHUNKED else None
        self._left = length  # bytes still to come, where their number is known
        self._only = b""  # most bodies come in one piece, which is kept as it is
        # Grows in place: a list of pieces would be in memory twice while it is joined.
        self._store: BytesIO | None = None
        self.complete = self._reader is None and not length
        self.held_bytes = 0  # as they came, framing included
        if length > most:
            raise TooLarge
        if length and room.held + length > room.most:
            raise NoRoom

    def feed(self, data: bytes) -> bytes:
        """Take what belongs to the body; returns what came behind its end.

        Raises:
            TooLarge: it is more than a body may be.
            NoRoom: it is more than there is room for.
            Malformed: the chunk framing is broken, or is most of what comes.
        """
        if self.complete:
            return data
        size, rest = len(data), b""
        if self._reader is None:
            if size > self._left:
                data, rest = data[: self._left], data[self._left :]
                size = self._left
            self._left -= size
            complete = not self._left
        else:
            end = self._reader.feed(data)
            if end >= 0:
                data, rest = data[:end], data[end:]
                size = end
            if self.held_bytes + size > self._most:
                raise TooLarge
            content = self._reader.size
            if self.held_bytes + size - content > MOST_CHUNKING_BYTES + content // CONTENT_PER_CHUNKING:
                raise TooChopped
            complete = end >= 0
        room = self._room
        held = room.held + size
        if held > room.most:
            raise NoRoom
        room.held = held
        self.complete = complete
        self.held_bytes += size
        self._keep(data)
        return rest

    def give_back(self) -> None:
        """The request is over: what it held is free for others."""
        self._room.held -= self.held_bytes
        self._room = _ANYWHERE

    def body(self) -> Body:
        """The body, once it is complete."""
        if self._store is not None:
            self._only, self._store = self._store.getvalue(), None
        wire = [self._only] if self._only else []
        if self._reader is not None:
            return Body(self._framing, None, wire, self._reader.size)
        return Body(self._framing, wire, wire, self.held_bytes)

    def _keep(self, data: bytes) -> None:
        if self._store is None:
            if not self._only:
                self._only = data
                return
            self._store = BytesIO()
            self._store.write(self._only)
            self._only = b""
        self._store.write(data)


def _without_chunks(wire: Sequence[bytes]) -> bytes:
    bare = BytesIO()
    reader = ChunkedReader(bare.write)
    for piece in wire:
        reader.feed(piece)
    return bare.getvalue()
