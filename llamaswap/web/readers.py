"""How streams of events and logs begin, and how many may: each may keep a MiB for one who does not read."""

from __future__ import annotations

from collections.abc import Iterable

from llamaswap.ceilings import Ceiling
from llamaswap.errors import Header, TooManyReaders
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.stream import ResponseStream


class Readers:
    """Counts the streams of one generation, of whatever kind.

    Args:
        ceiling: how many there may be; None = any number.
    """

    __slots__ = ("_ceiling", "now")

    def __init__(self, ceiling: Ceiling | None = None) -> None:
        self._ceiling = ceiling
        self.now = 0

    def begin(self, exchange: Exchange, headers: Iterable[Header]) -> ResponseStream | None:
        """Begin a stream that has no end of its own, and count it until `go`.

        Returns:
            None for HEAD, which has all of its answer then: it must not wait for an end that never comes.

        Raises:
            TooManyReaders: there are as many as there may be.
        """
        if exchange.head.method == b"HEAD":
            exchange.stream(200, headers).finish()
            return None
        if self._ceiling is not None and self.now >= self._ceiling.most:
            self._ceiling.reached()
            raise TooManyReaders
        self.now += 1
        return exchange.stream(200, headers)

    def go(self) -> None:
        """One has ended."""
        self.now -= 1
