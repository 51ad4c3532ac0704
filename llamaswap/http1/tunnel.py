"""What a client sends after an upgrade, on its way to the upstream.

The other direction needs no code of its own: to the relay it is a body that
ends with its connection.
"""

from __future__ import annotations

from llamaswap.http1.exchange import Exchange
from llamaswap.http1.outlet import Outlet

HIGH_WATER_BYTES = 1 << 20


class ClientToUpstream:
    """Passes bytes on at the pace at which the upstream takes them."""

    __slots__ = ("_exchange", "_outlet")

    def __init__(self, exchange: Exchange, outlet: Outlet) -> None:
        self._exchange = exchange
        self._outlet = outlet

    def client_data(self, data: bytes) -> None:
        """Bytes as the client sent them."""
        self._outlet.write(data)
        if self._outlet.buffered > HIGH_WATER_BYTES:
            self._exchange.pause_reading()

    def upstream_drained(self) -> None:
        """The upstream has taken some of it."""
        if self._outlet.buffered <= HIGH_WATER_BYTES // 2:
            self._exchange.resume_reading()
