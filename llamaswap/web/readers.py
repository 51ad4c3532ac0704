"""How many streams of events and logs are open: each may keep a MiB for a reader that does not read."""

from __future__ import annotations

from llamaswap.ceilings import Ceiling
from llamaswap.errors import TooManyReaders


class Readers:
    """Counts the streams of one generation, of whatever kind.

    Args:
        ceiling: how many there may be; None = any number.
    """

    __slots__ = ("_ceiling", "now")

    def __init__(self, ceiling: Ceiling | None = None) -> None:
        self._ceiling = ceiling
        self.now = 0

    def come(self) -> None:
        """One more is about to begin.

        Raises:
            TooManyReaders: there are as many as there may be.
        """
        if self._ceiling is not None and self.now >= self._ceiling.most:
            self._ceiling.reached()
            raise TooManyReaders
        self.now += 1

    def go(self) -> None:
        """One has ended."""
        self.now -= 1
