"""Both ends of connections in memory, for tests of the data path.

`Clients` stands for everybody who connects to a server under test, `Upstreams`
for the reactor through which a pool connects and for the servers behind it.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Iterator
from io import BytesIO
from itertools import pairwise
from typing import Any, Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.internet.protocol import Protocol
from twisted.internet.task import Clock
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.python.failure import Failure
from typing_extensions import override
from zope.interface import implementer

from llamaswap.http1.client import ClientReactor
from llamaswap.http1.server import Handler, Limits, ServerFactory
from llamaswap.http1.writing import format_lines, request_line

T = TypeVar("T")

TODAY = "Sun, 06 Nov 1994 08:49:37 GMT"


def format_request(method: bytes, target: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Head of an HTTP/1.1 request, blank line included."""
    return format_lines(request_line(method, target), headers) + b"\r\n"


class Running(Generic[T]):
    """A coroutine under way, and what has become of it."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self.results: list[T] = []
        self.errors: list[BaseException] = []
        self._deferred = Deferred.fromCoroutine(coroutine)
        self._deferred.addCallbacks(self.results.append, lambda failure: self.errors.append(failure.value))

    def cancel(self) -> None:
        """Cancel it."""
        self._deferred.cancel()

    def result(self) -> T:
        """What it returned."""
        assert not self.errors, self.errors
        (result,) = self.results
        return result

    def error(self) -> BaseException:
        """What it raised."""
        (error,) = self.errors
        return error

    def waits(self) -> bool:
        """Whether it is still under way."""
        return not self.results and not self.errors


class Wire(StringTransport):
    """A transport that says what was done to it and tells its protocol when it is cut."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(lenient=True)  # type: ignore[no-untyped-call]  # Twisted's
        self.clock = clock
        self.protocol: Protocol | None = None
        self.aborted = False
        self.lost = False
        self.room_bytes: int | None = None  # taken before it stalls; None never does

    @override
    def write(self, data: bytes) -> None:
        if self.lost or self.aborted:
            return
        super().write(data)  # type: ignore[no-untyped-call]  # Twisted's
        if self.room_bytes is not None:
            self.room_bytes -= len(data)
            if self.room_bytes <= 0 and self.producer is not None:
                self.producer.pauseProducing()

    def setTcpNoDelay(self, enabled: bool) -> None:
        """TLS passes this on to whatever it is put on."""

    def setTcpKeepAlive(self, enabled: bool) -> None:
        """As `setTcpNoDelay`."""

    @override
    def loseConnection(self) -> None:
        if not self.disconnecting:
            self.disconnecting = True
            self.clock.callLater(0, self.lose, ConnectionDone())

    @override
    def abortConnection(self) -> None:
        if not self.aborted:
            self.aborted = self.disconnecting = True
            self.clock.callLater(0, self.lose, ConnectionAborted())

    def lose(self, why: Exception) -> None:
        """The connection is gone, now."""
        if not self.lost:
            self.lost = True
            assert self.protocol is not None
            self.protocol.connectionLost(Failure(why))


class End:
    """The far end of a wire: what a peer sends and sees."""

    def __init__(self, protocol: Protocol, clock: Clock) -> None:
        self.wire = Wire(clock)
        self.wire.protocol = protocol
        protocol.makeConnection(self.wire)

    def send(self, *pieces: bytes) -> None:
        """Deliver pieces, one call each."""
        for piece in pieces:
            if not self.wire.lost and not self.wire.aborted:
                assert self.wire.protocol is not None
                self.wire.protocol.dataReceived(piece)

    def take(self) -> bytes:
        """What has come since the last time."""
        data: bytes = self.wire.io.getvalue()
        self.wire.io = BytesIO()
        return data

    def leave(self) -> None:
        """Close our side, in good order."""
        self.wire.lose(ConnectionDone())

    def reset(self) -> None:
        """Close our side with a reset."""
        self.wire.lose(ConnectionLost())

    def is_closed(self) -> bool:
        """Whether the program under test has closed the connection, in good order or not."""
        return self.wire.disconnecting

    def is_aborted(self) -> bool:
        """Whether the program under test has cut the connection."""
        return self.wire.aborted

    def is_paused(self) -> bool:
        """Whether the program under test has stopped reading."""
        return self.wire.producerState == "paused"

    def stall(self) -> None:
        """Take no more bytes for the time being."""
        assert self.wire.producer is not None
        self.wire.producer.pauseProducing()

    def sip(self, size_bytes: int) -> bytes:
        """Take about so much of what waits, and stall again."""
        assert self.wire.producer is not None
        self.wire.room_bytes = size_bytes
        self.wire.producer.resumeProducing()
        self.wire.room_bytes = 0
        return self.take()

    def go_on(self) -> None:
        """Take bytes again."""
        assert self.wire.producer is not None
        self.wire.room_bytes = None
        self.wire.producer.resumeProducing()


class Clients:
    """A server under test, and those who connect to it."""

    def __init__(self, handler: Handler, clock: Clock | None = None, limits: Limits | None = None) -> None:
        self.clock = clock or Clock()
        self.factory = ServerFactory(handler, self.clock, limits=limits or Limits(), today=lambda: TODAY)

    def connect(self) -> End:
        """One more client."""
        return End(self.factory.buildProtocol(None), self.clock)


@implementer(ClientReactor)
class Upstreams(MemoryReactorClock):
    """A reactor whose outgoing connections the test accepts or refuses."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Twisted's
        self._seen = 0

    @property
    def attempts(self) -> int:
        """Connections asked for and neither accepted nor refused yet."""
        return len(self.tcpClients) - self._seen

    def accept(self) -> End:
        """Let the oldest attempt succeed."""
        factory = self.tcpClients[self._seen][2]
        self._seen += 1
        protocol = factory.buildProtocol(None)
        assert isinstance(protocol, Protocol)
        return End(protocol, self)

    def refuse(self, why: Exception) -> None:
        """Let the oldest attempt fail."""
        factory = self.tcpClients[self._seen][2]
        connector = self.connectors[self._seen]
        self._seen += 1
        factory.clientConnectionFailed(connector, Failure(why))


def split(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    """`data` in pieces, cut at these places."""
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, stop in pairwise(edges):
        yield data[start:stop]
