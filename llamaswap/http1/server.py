"""The server's side: one listening port, and the connections it has open.

What a connection does with its bytes is `llamaswap.http1.connection`'s part.
The names that users of the server need are gathered here.
"""

from __future__ import annotations

from collections.abc import Callable
from email.utils import formatdate

from twisted.internet.interfaces import IAddress, IProtocolNegotiationFactory, IReactorTime
from twisted.internet.protocol import Factory
from typing_extensions import override
from zope.interface import implementer

from llamaswap.http1.body import Body, Room
from llamaswap.http1.connection import ServerConnection
from llamaswap.http1.exchange import ClientGone, Exchange
from llamaswap.http1.framing import Framing
from llamaswap.http1.hosting import TEXT, Fields, Handler, Hosted, Limits
from llamaswap.http1.memory import HeadMemory
from llamaswap.http1.parsing import Malformed, parse_request
from llamaswap.http1.stream import ResponseStream

__all__ = [
    "Body",
    "ClientGone",
    "Exchange",
    "Framing",
    "Handler",
    "Limits",
    "ResponseStream",
    "ServerFactory",
]


@implementer(IProtocolNegotiationFactory)
class ServerFactory(Factory):
    """Builds the connections of one listening port and knows which are open."""

    noisy = False

    def __init__(
        self,
        handler: Handler,
        clock: IReactorTime,
        *,
        limits: Limits | None = None,
        today: Callable[[], str] = lambda: formatdate(usegmt=True),
    ) -> None:
        """Serve with `handler`.

        Args:
            handler: answers one exchange; cancelled when its client leaves.
            clock: monotonic.
            today: wall-clock time as the Date field wants it.
        """
        self.handler = handler
        self.clock = clock
        self.limits = limits or Limits()
        self.room = Room()
        self.memory = HeadMemory(parse_request)
        self.closing = False
        self._today = today
        self._open: set[Hosted] = set()
        self._date = b""
        self._date_second = -1

    @override
    def buildProtocol(self, addr: IAddress | None) -> ServerConnection:
        return ServerConnection(self)

    def acceptableProtocols(self) -> list[bytes]:
        """What a TLS client is offered when it asks (ALPN): nothing else is spoken here."""
        return [b"http/1.1"]

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._open)

    @property
    def untaken(self) -> int:
        """Bytes of answers that are complete here, and not with their clients yet."""
        return sum(connection.untaken for connection in self._open)

    def close_idle(self) -> None:
        """Close idle connections now, and every other one after its current exchange."""
        self.closing = True
        for connection in tuple(self._open):
            connection.close_when_idle()

    def abort_all(self) -> None:
        """Cut every connection; their handlers are cancelled."""
        for connection in tuple(self._open):
            connection.cut()

    def opened(self, connection: Hosted) -> None:
        """Called by a connection when it begins."""
        self._open.add(connection)

    def closed(self, connection: Hosted) -> None:
        """Called by a connection when it is lost."""
        self._open.discard(connection)

    def refusal(self, error: Malformed) -> tuple[Fields, bytes]:
        """What a client is told whose request is not taken, called once for each: fields and body."""
        return TEXT, error.reason.encode() + b"\n"

    def date(self) -> bytes:
        """Now, as the Date field has it; made once a second."""
        second = int(self.clock.seconds())
        if second != self._date_second:
            self._date_second = second
            self._date = self._today().encode("ascii")
        return self._date
