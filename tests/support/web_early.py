"""One client whose answer begins before its time."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from llamaswap.http1.exchange import Exchange
from llamaswap.web.early import EVENTS, EarlyAnswer, Form
from support.http1_wires import TODAY, Clients

POST = b"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: 0\r\n\r\n"
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    b"X-Accel-Buffering: no\r\nDate: " + TODAY.encode() + b"\r\nConnection: close\r\n\r\n"
)


class Waiting:
    """A client that waits; it speaks HTTP/1.0 so that what it is told comes bare.

    Args:
        form: what it is going to get.
        request: what it has asked for.
    """

    def __init__(self, form: Form = EVENTS, request: bytes = POST) -> None:
        self.clock = Clock()
        self.exchanges: list[Exchange] = []
        self.client = Clients(self._keep).connect()
        self.client.send(request)
        (self.exchange,) = self.exchanges
        self.early = EarlyAnswer(self.exchange, form, self.clock)

    async def _keep(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        await Deferred[None]()  # the test answers

    def advance(self, seconds: float) -> None:
        """Let time pass in small steps, as it does."""
        until = self.clock.seconds() + seconds
        while self.clock.seconds() < until - 1e-9:
            self.clock.advance(min(1 / 64, until - self.clock.seconds()))

    def told(self) -> bytes:
        """What has come since the last time, without the head."""
        return self.client.take().removeprefix(HEAD)

    def timers(self) -> int:
        """How many timers run."""
        return len(self.clock.getDelayedCalls())
