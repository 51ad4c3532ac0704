"""What a client sends after an upgrade, on its way to the upstream.

The other direction needs no code of its own: to the relay it is a body that
ends with its connection.
"""

from __future__ import annotations

from llamaswap.http1.exchange import Exchange
from llamaswap.http1.upstream import UpstreamConnection

HIGH_WATER_BYTES = 1 << 20


class ClientToUpstream:
    """Passes bytes on at the pace at which the upstream takes them; one that takes nothing for long fails."""

    __slots__ = ("_exchange", "_held_back", "_upstream")

    def __init__(self, exchange: Exchange, upstream: UpstreamConnection) -> None:
        self._exchange = exchange
        self._upstream = upstream
        self._held_back = False  # the client is

    def client_data(self, data: bytes) -> None:
        """Bytes as the client sent them."""
        self._upstream.outlet.write(data)
        if not self._held_back and self._upstream.outlet.buffered > HIGH_WATER_BYTES:
            self._held_back = True
            self._exchange.pause_reading()
            self._upstream.expect_taking()

    def upstream_drained(self) -> None:
        """The upstream has taken some of it."""
        if not self._held_back:
            return
        if self._upstream.outlet.buffered <= HIGH_WATER_BYTES // 2:
            self._held_back = False
            self._upstream.expect_nothing()
            self._exchange.resume_reading()
        else:
            self._upstream.expect_taking()
