"""The meter that sits beside one answer and sees its bytes in passing.

It only looks: it delays and changes nothing, and no answer can make it raise.  It knows which reader suits an
answer's head; reading is left to `events`, `reports` and `failures`.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec
from typing_extensions import override

from llamaswap.metering.decoding import BadEncoding, Decoder, TooMuch, decoder_for
from llamaswap.metering.events import EventSplitter
from llamaswap.metering.failures import failure_text
from llamaswap.metering.reports import StreamReport, usage_of_body
from llamaswap.metering.usage import NOTHING, Usage

LARGEST_BODY: Final = 64 * 1024 * 1024
LARGEST_FAILURE: Final = 256 * 1024  # an error text that needs more is not one for a list
FAILURES: Final = 300  # statuses from here on; each 2xx is a success
_SPACE: Final = b" \t\r\n"
_SPACES: Final = frozenset({b" ", b"\t", b"\r", b"\n"})


class Metered(msgspec.Struct, frozen=True, kw_only=True):
    """What one answer came to."""

    usage: Usage
    error: str  # the row's error_msg; "" when there is nothing to report


NOT_METERED: Final = Metered(usage=NOTHING, error="")
"""Of an answer that is not read, and of none."""


def meter_whole(
    body: bytes, *, req_path: str, status: int, content_type: str, content_encoding: str
) -> Metered:
    """Do what a `Meter` does, for an answer that is here already; most are, and read in half the time."""
    if (
        200 <= status < FAILURES
        and not content_encoding
        and len(body) <= LARGEST_BODY
        and "text/event-stream" not in content_type.lower()
    ):
        return Metered(usage=usage_of_body(body, req_path), error="")
    meter = Meter(req_path=req_path)
    meter.begin(status=status, content_type=content_type, content_encoding=content_encoding)
    meter.feed(body)
    return meter.finish()


class Meter:
    """Meters one answer: `begin` with its head, `feed` its body, `finish` once.

    Args:
        req_path: as sent upstream; /infill has a shape of its own.
    """

    __slots__ = ("_decoder", "_reader", "_req_path", "_status", "_trouble")

    def __init__(self, *, req_path: str) -> None:
        self._req_path = req_path
        self._status = 0
        self._reader: _Reader = _NOTHING_TO_READ
        self._decoder: Decoder | None = None
        self._trouble = ""

    def begin(self, *, status: int, content_type: str, content_encoding: str) -> None:
        """Choose a reader; header values as they came, "" when absent."""
        self._status = status
        self._decoder = decoder_for(content_encoding) if content_encoding else None
        self._reader = self._reader_for(status, content_type.lower())

    def feed(self, data: bytes) -> None:
        """Look at body bytes without their chunk framing, still content-encoded; cheap for a token chunk."""
        if self._decoder is None:
            self._reader.feed(data)
        else:
            self._feed_decoded(self._decoder, data)

    def finish(self) -> Metered:
        """Sum up, at the end of the answer or wherever it broke off; all zero if there never was a head."""
        if self._decoder is not None and not self._trouble:
            try:
                self._decoder.finish()
            except BadEncoding as error:
                self._trouble = str(error)
        metered = self._reader.result()
        if not self._trouble:
            return metered
        what = "response decode failed" if self._status >= FAILURES else "response decompression failed"
        return Metered(usage=metered.usage, error=f"{what}: {self._trouble}")

    def _reader_for(self, status: int, content_type: str) -> _Reader:
        if status < 200:
            return _NOTHING_TO_READ
        if status >= FAILURES:
            return _Refusal(status)
        return _Stream() if "text/event-stream" in content_type else _Body(self._req_path)

    def _feed_decoded(self, decoder: Decoder, data: bytes) -> None:
        try:
            for piece in decoder.decode(data):
                self._reader.feed(piece)
        except BadEncoding as error:
            self._trouble = str(error)
            self._give_up()
        except TooMuch:
            self._give_up()

    def _give_up(self) -> None:
        # What zlib had decoded before it stumbled depends on how the bytes were cut, so none of it counts.
        self._reader = _Nothing(failure_text(self._status, b"") if self._status >= FAILURES else "")
        self._decoder = None


class _Reader(Protocol):
    """Reads one kind of answer, decoded bytes in."""

    def feed(self, data: bytes) -> None: ...

    def result(self) -> Metered: ...


class _Nothing(_Reader):
    """For answers that there is nothing to read in, or no longer."""

    def __init__(self, error: str = "") -> None:
        self._error = error

    @override
    def feed(self, data: bytes) -> None:
        pass

    @override
    def result(self) -> Metered:
        return Metered(usage=NOTHING, error=self._error)


_NOTHING_TO_READ: Final = _Nothing()


class _Stream(_Reader):
    """An event stream, read as it passes."""

    def __init__(self) -> None:
        self._report = StreamReport()
        self._splitter = EventSplitter(self._report.event)

    @override
    def feed(self, data: bytes) -> None:
        self._splitter.feed(data)

    @override
    def result(self) -> Metered:
        self._splitter.finish()
        return Metered(usage=self._report.usage(), error="")


class _Body(_Reader):
    """A whole answer, kept in pieces and read at the end; only if it can be JSON, and not if it is huge."""

    def __init__(self, req_path: str) -> None:
        self._req_path = req_path
        # Elsewhere an array reports nothing, and embeddings come as long ones.
        self._openings = b"{[" if req_path.startswith("/infill") else b"{"
        self._pieces: list[bytes] = []
        self._size_bytes = 0
        self._wanted = True

    @override
    def feed(self, data: bytes) -> None:
        if not self._pieces and data[:1] in _SPACES:
            data = data.lstrip(_SPACE)
        if not data or not self._wanted:
            return
        self._size_bytes += len(data)
        self._wanted = self._size_bytes <= LARGEST_BODY and (bool(self._pieces) or data[0] in self._openings)
        if self._wanted:
            self._pieces.append(data)
        else:
            self._pieces.clear()

    @override
    def result(self) -> Metered:
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        return Metered(usage=usage_of_body(body, self._req_path), error="")


class _Refusal(_Reader):
    """An error answer: a prefix of it, for its text."""

    def __init__(self, status: int) -> None:
        self._status = status
        self._pieces: list[bytes] = []
        self._room_bytes = LARGEST_FAILURE

    @override
    def feed(self, data: bytes) -> None:
        if self._room_bytes > 0:
            self._pieces.append(data[: self._room_bytes])
            self._room_bytes -= len(data)

    @override
    def result(self) -> Metered:
        return Metered(usage=NOTHING, error=failure_text(self._status, b"".join(self._pieces)))
