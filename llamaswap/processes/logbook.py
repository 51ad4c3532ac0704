"""Keep the last bytes that a child wrote, and pass new ones on.

Pure: bytes come in, bytes and lines go out.  Where they come from, and who
shows them to whom, is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable

HISTORY_BYTES = 102_400
"""How much of its end a logbook remembers: 100 KiB."""

LINE_CHARACTERS = 1_000
"""A longer line is cut in `Logbook.tail`; it is meant for an error message."""

# A terminal's colour and cursor sequences first, or their tails would stay as text.
_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
Subscriber = Callable[[bytes], None]


class Logbook:
    """A ring of bytes with listeners.

    Memory is bounded by `size` whatever comes in; the oldest bytes go first.
    """

    def __init__(self, size: int = HISTORY_BYTES) -> None:
        self.written = 0  # bytes in all, ever
        self._size = size
        self._bytes = bytearray()
        self._subscribers: dict[int, Subscriber] = {}
        self._listening: tuple[Subscriber, ...] = ()  # the same, made anew only when it changes
        self._subscriptions = 0

    def append(self, data: bytes) -> None:
        """Remember `data`, then hand it to every subscriber as it came."""
        self.written += len(data)
        if len(data) >= self._size:
            self._bytes[:] = data[-self._size :]
        else:
            self._bytes += data
            surplus = len(self._bytes) - self._size
            if surplus > 0:
                del self._bytes[:surplus]  # cutting a bytearray at its front moves no bytes
        for subscriber in self._listening:
            subscriber(data)

    def history(self) -> bytes:
        """Everything still remembered, byte for byte, oldest first."""
        return bytes(self._bytes)

    def tail(self, lines: int, *, since: int = 0) -> list[str]:
        """The last lines that say something, oldest first.

        Terminal colours and whatever else can't be printed, Unicode's own line
        ends among it, are left out, bytes that are not UTF-8 are replaced, blank
        lines are skipped, long ones are cut.

        Args:
            lines: at most so many, >= 0.
            since: only what came after `written` had this value.
        """
        recent = self._bytes[max(0, len(self._bytes) - max(0, self.written - since)) :]
        text = _SEQUENCES.sub("", recent.decode("utf-8", "replace")).replace("\r", "\n")
        clean = (_printable(line).strip() for line in text.split("\n"))
        said = [line[:LINE_CHARACTERS] for line in clean if line]
        return said[-lines:] if lines > 0 else []

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Call `callback` with each later chunk; it must neither raise nor block.

        Returns:
            A function that ends the subscription; calling it again does nothing.
        """
        self._subscriptions += 1
        key = self._subscriptions
        self._subscribers[key] = callback
        self._listening = tuple(self._subscribers.values())

        def unsubscribe() -> None:
            self._subscribers.pop(key, None)
            self._listening = tuple(self._subscribers.values())

        return unsubscribe


def _printable(line: str) -> str:
    return line if line.isprintable() else "".join(c for c in line if c.isprintable() or c == "\t")
