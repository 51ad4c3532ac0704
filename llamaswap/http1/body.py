"""One request body: collected as it comes, kept once, ready to be sent on unchanged.

Pure.  Does not know who sends it or who wants it.
"""

from __future__ import annotations

from collections.abc import Sequence

from llamaswap.http1.framing import BodyReader, Framing, body_reader


class Body:
    """A complete request body."""

    __slots__ = ("_pieces", "_wire", "framing", "size")

    def __init__(self, framing: Framing, pieces: list[bytes], wire: list[bytes], size: int) -> None:
        self.framing = framing  # NONE, LENGTH or CHUNKED
        self.size = size  # decoded bytes
        self._pieces = pieces
        self._wire = wire  # the same list as the pieces, unless chunked

    @property
    def decoded(self) -> bytes:
        """The body without its framing; joined when first asked for, and then kept joined."""
        if len(self._pieces) != 1:
            # In place: without chunks the wire shares the list, and one copy is enough.
            self._pieces[:] = [b"".join(self._pieces)]
        return self._pieces[0]

    @property
    def wire(self) -> Sequence[bytes]:
        """The body exactly as it was framed when it came: sizes, extensions and trailers."""
        return self._wire


class Intake:
    """Collects the body of one request."""

    __slots__ = ("_framing", "_pieces", "_reader", "_wire", "complete", "held_bytes")

    def __init__(self, framing: Framing, length: int) -> None:
        self._framing = framing
        self._pieces: list[bytes] = []
        self._wire: list[bytes] = [] if framing is Framing.CHUNKED else self._pieces
        self._reader: BodyReader | None = body_reader(framing, length, self._pieces.append)
        self.complete = self._reader is None
        self.held_bytes = 0  # as they came, framing included

    def feed(self, data: bytes) -> bytes:
        """Take what belongs to the body; returns what came behind its end.

        Raises:
            Malformed: the chunk framing is broken.
        """
        if self._reader is None:
            return data
        end = self._reader.feed(data)
        rest = b""
        if end >= 0:
            self.complete = True
            data, rest = data[:end], data[end:]
        self.held_bytes += len(data)
        if self._framing is Framing.CHUNKED:
            self._wire.append(data)
        return rest

    def body(self) -> Body:
        """The body, once it is complete."""
        size = 0 if self._reader is None else self._reader.size
        return Body(self._framing, self._pieces, self._wire, size)
