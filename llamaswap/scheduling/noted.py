"""What a scheduler noted in the metadata of a row, read back: how long a request waited, loaded and ran.

Knows the keys and how their numbers are written; `vocabulary` writes most of them.  What is made of the times
is the business of whoever reads rows.
"""

from __future__ import annotations

from typing import Final

import msgspec

QUEUE_WAIT: Final = "serial_queue_wait_ms"
"""The key that every row has whose request came before the serial scheduler."""


class Noted(msgspec.Struct, frozen=True):
    """The notes in one row; numbers are written as text, and what is missing is empty."""

    serial_priority: str = ""
    fifo_priority: str = ""
    serial_score: str = ""  # only of rows that were dispatched
    serial_queue_wait_ms: str = ""
    serial_load_ms: str = ""

    @property
    def scheduled(self) -> bool:
        """Whether the request took its turn, under whichever scheduler."""
        return bool(self.serial_priority or self.fifo_priority)

    @property
    def timed(self) -> bool:
        """Whether it is known when its turn came, and how much of that was a load."""
        return self.serial_queue_wait_ms.isdecimal() and self.serial_load_ms.isdecimal()

    @property
    def priority(self) -> int:
        """The priority that it waited with; 0 where nobody told."""
        return _whole(self.serial_priority or self.fifo_priority)

    @property
    def waited(self) -> float:
        """Seconds until it was dispatched; 0 where nobody told."""
        return _whole(self.serial_queue_wait_ms) / 1000

    @property
    def load(self) -> float:
        """Seconds of load between dispatch and lease; 0 where the model was there, or nobody told."""
        return _whole(self.serial_load_ms) / 1000

    def run(self, lasted: float) -> float:
        """Return for how many seconds it had its model, of those from its arrival to its end."""
        return max(0.0, lasted - self.waited - self.load)


_NOTHING = Noted()
_decode = msgspec.json.Decoder(Noted).decode


def read(metadata: str) -> Noted:
    """Return the notes in a row's `metadata_json`; what can't be read tells nothing."""
    try:
        return _decode(metadata) if metadata else _NOTHING
    except msgspec.DecodeError:
        return _NOTHING


def _whole(text: str) -> int:
    try:
        return int(text or "0")
    except ValueError:
        return 0
