"""The store of captures: in memory, large ones compressed; the oldest gives way.

Pure.  Knows sizes and ids; how a capture comes about is `llamaswap.metering.capture`'s business.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from llamaswap.metering.capture import Capture

MIB: Final = 1024 * 1024

SMALL: Final = 8 * 1024
"""Bytes up to which a capture stays as it is: compressing it takes 30 us, most of it to make zlib ready."""

LEVEL: Final = 1
"""zlib's fastest: text still shrinks to a ninth for 3 ms a MiB; what doesn't shrink costs 20 ms."""

SLICE: Final = 256 * 1024

RAW_PER_COMPRESSED: Final = 4  # what a capture may weigh before it is compressed, in buffers
LARGEST_RAW: Final = 32 * MIB

MOST_AWAITING: Final = 2 * LARGEST_RAW
"""Bytes that may wait to be compressed: a thread does that, one after the other."""


class Captures:
    """Captures by the id of their activity row.

    Args:
        capacity_bytes: bytes in all, as they are kept; 0 keeps nothing.
    """

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity = max(0, capacity_bytes)
        # As it is, or packed; and its bytes.  Ordered, because a dict looks for its first item behind all
        # that were taken out before it.
        self._kept: OrderedDict[int, tuple[Capture | bytes, int]] = OrderedDict()
        self.held_bytes = 0
        self._awaiting: dict[int, Capture] = {}  # what is being packed elsewhere
        self._awaiting_bytes = 0

    @property
    def largest_raw(self) -> int:
        """Bytes that one recording may hold; more would hardly fit when compressed."""
        return min(RAW_PER_COMPRESSED * self._capacity, LARGEST_RAW)

    def resize(self, capacity_bytes: int) -> None:
        """Hold this much from now on; the oldest captures give way at once."""
        self._capacity = max(0, capacity_bytes)
        self._trim()

    def clear(self) -> None:
        """Forget all of them: their rows are no longer to be seen."""
        self._kept.clear()
        self._awaiting.clear()
        self.held_bytes = self._awaiting_bytes = 0

    def lay_by(self, row_id: int, capture: Capture) -> Callable[[], bytes | None] | None:
        """Show a large capture as it is until `packed` is told what came of packing it.

        Returns:
            What packs it and touches nothing else, so that a thread may call it; None where that is not
            worth it (`keep` will do), or too much waits already.
        """
        size = capture.size_bytes
        if size <= SMALL or self._awaiting_bytes + size > MOST_AWAITING:
            return None
        self._awaiting[row_id] = capture
        self._awaiting_bytes += size
        return partial(pack, capture, self._capacity)

    def packed(self, row_id: int, packed: bytes | None) -> bool:
        """Keep what `lay_by` had packed; False where it is too large, or nobody wants it any more."""
        capture = self._awaiting.pop(row_id, None)
        if capture is None:
            return False
        self._awaiting_bytes -= capture.size_bytes
        return packed is not None and self._put(row_id, packed, len(packed))

    def keep(self, row_id: int, capture: Capture) -> bool:
        """Keep a capture, compressed unless it is small; False when it alone is larger than the store."""
        kept: Capture | bytes | None = capture
        size = capture.size_bytes
        if size > SMALL:
            kept = pack(capture, self._capacity)
            size = 0 if kept is None else len(kept)
        return kept is not None and self._put(row_id, kept, size)

    def _put(self, row_id: int, kept: Capture | bytes, size: int) -> bool:
        if size > self._capacity:
            return False
        self._forget(row_id)
        self._kept[row_id] = kept, size
        self.held_bytes += size
        if self.held_bytes > self._capacity:
            self._trim()
        return True

    def __contains__(self, row_id: int) -> bool:
        """Whether the row's capture is still here: `has_capture`."""
        return row_id in self._kept or row_id in self._awaiting

    def show(self, row_id: int) -> dict[str, Any] | None:
        """Return what `GET /api/captures/{id}` answers, or None."""
        found = self._kept.get(row_id)
        if found is None:
            waits = self._awaiting.get(row_id)
            return None if waits is None else {"id": row_id, **plain(waits)}
        kept, _ = found
        return {"id": row_id, **(unpack(kept) if isinstance(kept, bytes) else plain(kept))}

    def _trim(self) -> None:
        while self.held_bytes > self._capacity:
            self._forget(next(iter(self._kept)))

    def _forget(self, row_id: int) -> None:
        found = self._kept.pop(row_id, None)
        if found is not None:
            self.held_bytes -= found[1]


def plain(capture: Capture) -> dict[str, Any]:
    """Show a capture as JSON: bodies in base64, null where there is none."""
    return {
        "req_path": capture.req_path,
        "req_headers": capture.req_headers(),
        "req_body": _base64(b"".join(capture.req_body)),
        "resp_headers": capture.resp_headers(),
        "resp_body": _base64(b"".join(capture.resp_body)),
    }


def pack(capture: Capture, most: int) -> bytes | None:
    """Compress a capture: a line of JSON, then both bodies.

    Gives up, with None, as soon as more than `most` bytes have come out: what does not shrink is slow, too.
    """
    packed: list[bytes] = []
    for piece in _compressed(capture):
        packed.append(piece)
        most -= len(piece)
        if most < 0:
            return None
    return b"".join(packed)


def unpack(packed: bytes) -> dict[str, Any]:
    """Show a packed capture as `plain` shows one that is not."""
    line, _, bodies = zlib.decompress(packed).partition(b"\n")
    about = json.loads(line)
    border = about["req_bytes"]
    return {
        "req_path": about["req_path"],
        "req_headers": about["req_headers"],
        "req_body": _base64(bodies[:border]),
        "resp_headers": about["resp_headers"],
        "resp_body": _base64(bodies[border:]),
    }


def _compressed(capture: Capture) -> Iterator[bytes]:
    about = {
        "req_path": capture.req_path,
        "req_headers": capture.req_headers(),
        "resp_headers": capture.resp_headers(),
        "req_bytes": sum(map(len, capture.req_body)),
    }
    shrink = zlib.compressobj(LEVEL)
    yield shrink.compress(json.dumps(about).encode() + b"\n")
    for piece in (*capture.req_body, *capture.resp_body):
        view = memoryview(piece)
        for start in range(0, len(view), SLICE):
            yield shrink.compress(view[start : start + SLICE])
    yield shrink.flush()


def _base64(body: bytes) -> str | None:
    return base64.b64encode(body).decode() if body else None
