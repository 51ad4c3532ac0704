"""Bytes on their way out of one connection.

Offers them to the kernel at once and leaves to the reactor only what the
kernel did not take: that saves two ``epoll_ctl`` calls for each small write.
What must wait is kept here and handed on as room appears, so that `buffered`
tells how far the other side lags behind.

Knows nothing of HTTP.
"""

from __future__ import annotations

import socket
import struct
import termios
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from fcntl import ioctl

from twisted.internet import tcp
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IConsumer, IPullProducer, IPushProducer, ITCPTransport
from typing_extensions import override
from zope.interface import implementer

HANDOVER_BYTES = 65536  # left to the transport at a time, and the most that is joined

SILENCE_SECONDS = 30  # until a silent connection is asked whether somebody is still there
PROBE_SECONDS = 15  # between two such questions
PROBES = 4  # that may stay unanswered; with the kernel's own numbers it takes more than two hours


class StreamTransport(ITCPTransport, IConsumer, IPushProducer):
    """What a connection is, seen from its protocol: both ends can be held back."""


class Outlet:
    """Where one connection's bytes go; `open_outlet` chooses the kind.

    After `close` and after the connection is lost, writes are dropped.
    """

    __slots__ = ("_backlog", "_closing", "_drained", "_transport", "buffered")

    def __init__(self, transport: StreamTransport, drained: Callable[[], None]) -> None:
        self.buffered = 0  # bytes that the kernel has not taken, rounded up by at most HANDOVER_BYTES
        self._transport = transport
        self._drained = drained
        self._backlog: deque[bytes | memoryview] = deque()
        self._closing = False

    @property
    def untaken(self) -> int:
        """`buffered`, and what the kernel has that the other side has not acknowledged, if it tells.

        Of a megabyte in the kernel a third must go before there is room for more,
        which takes a slow reader minutes: this shrinks all the time.
        """
        wire = self.wire()
        return self.buffered + (0 if wire is None else _unacknowledged(wire))

    def write(self, data: bytes) -> None:
        """Send `data` behind everything that was written before."""
        raise NotImplementedError

    def write_all(self, pieces: Sequence[bytes]) -> None:
        """Send pieces in order; small ones leave in one packet, large ones are not copied."""
        if len(pieces) == 2:  # a head and its body, as nearly always
            head, body = pieces
            if len(head) + len(body) <= HANDOVER_BYTES:
                self.write(head + body)
                return
        elif sum(map(len, pieces)) <= HANDOVER_BYTES:
            self.write(b"".join(pieces))
            return
        for piece in pieces:
            self.write(piece)

    def close(self) -> None:
        """Close the connection once everything is out."""
        if not self._closing:
            self._closing = True
            if not self.buffered:
                self._close_now()

    def hang_up(self) -> None:
        """The connection is about to be aborted; where it can be, the other side is told now."""
        self.stopProducing()

    def stopProducing(self) -> None:
        """The connection is lost: nothing more will be taken."""
        self._closing = True
        self._backlog.clear()
        self.buffered = 0

    def wire(self) -> socket.socket | None:
        """The socket at the bottom, to look at; None where there is none."""
        return None

    def _queue(self, data: bytes | memoryview) -> None:
        self._backlog.append(data)
        self.buffered += len(data)

    def _close_now(self) -> None:
        self._transport.loseConnection()


@implementer(IPullProducer)
class SocketOutlet(Outlet):
    """Writes to the socket of a plain TCP or UNIX connection.

    While the transport holds bytes of ours we are its pull producer: it asks
    for more exactly when it has got rid of all it had, and that is also when
    writing to the socket directly keeps the order.
    """

    __slots__ = ("_armed", "_send", "_shutdown", "handle")

    def __init__(
        self, transport: StreamTransport, handle: socket.socket, drained: Callable[[], None]
    ) -> None:
        super().__init__(transport, drained)
        self.handle = handle
        self._send = handle.send
        self._shutdown = handle.shutdown
        self._armed = False

    @override
    def write(self, data: bytes) -> None:
        if self._closing:
            return
        if self.buffered:
            self._queue(data)
            return
        try:
            sent = self._send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            sent = 0  # the transport meets the same error and ends the connection
        if sent != len(data):
            self._queue(memoryview(data)[sent:])
            self._hand_over()
            self._transport.registerProducer(self, False)
            self._armed = True

    @override
    def hang_up(self) -> None:
        self.stopProducing()
        with suppress(OSError):  # it has gone already
            self._shutdown(socket.SHUT_RDWR)

    def resumeProducing(self) -> None:
        """The transport is empty."""
        if not self._armed:
            return  # registering a pull producer asks it at once, with the transport full
        self.buffered = sum(map(len, self._backlog))
        while self._backlog:
            piece = self._backlog.popleft()
            try:
                sent = self._send(piece)
            except OSError:
                sent = 0
            self.buffered -= sent
            if sent != len(piece):
                self._backlog.appendleft(memoryview(piece)[sent:])
                self._hand_over()
                break
        else:
            self._armed = False
            self._transport.unregisterProducer()
            if self._closing:
                self._close_now()
        self._drained()

    @override
    def wire(self) -> socket.socket:
        return self.handle

    def _hand_over(self) -> None:
        """Leave the next bytes to the transport, so that it waits for the socket; they still count."""
        piece = self._backlog.popleft()
        if len(piece) > HANDOVER_BYTES:
            self._backlog.appendleft(memoryview(piece)[HANDOVER_BYTES:])
        self._transport.write(bytes(piece[:HANDOVER_BYTES]))


@implementer(IPushProducer)
class TransportOutlet(Outlet):
    """Writes through any other transport (TLS), which says when it has had enough."""

    __slots__ = ("_paused",)

    def __init__(self, transport: StreamTransport, drained: Callable[[], None]) -> None:
        super().__init__(transport, drained)
        self._paused = False
        transport.registerProducer(self, True)

    @override
    def write(self, data: bytes) -> None:
        if self._closing:
            return
        if self._paused or self._backlog or len(data) > HANDOVER_BYTES:
            self._queue(data)
            self._pump()
        else:
            self._transport.write(data)

    def pauseProducing(self) -> None:
        """The transport holds enough."""
        self._paused = True

    def resumeProducing(self) -> None:
        """The transport has room."""
        self._paused = False
        self._pump()
        if self._closing and not self._backlog:
            self._close_now()
        self._drained()

    def _pump(self) -> None:
        """Hand on while there is room, a little at a time: the transport would copy all that it gets."""
        while self._backlog and not self._paused:
            piece = memoryview(self._backlog.popleft())
            if len(piece) > HANDOVER_BYTES:
                self._backlog.appendleft(piece[HANDOVER_BYTES:])
                piece = piece[:HANDOVER_BYTES]
            self.buffered -= len(piece)
            self._transport.write(bytes(piece))

    @override
    def wire(self) -> socket.socket | None:
        below = getattr(self._transport, "transport", None)  # what TLS is put on
        return below.getHandle() if isinstance(below, tcp.Connection) else None

    @override
    def _close_now(self) -> None:
        # A transport waits for its producer before it closes.
        self._transport.unregisterProducer()
        super()._close_now()


def open_outlet(transport: StreamTransport, drained: Callable[[], None]) -> Outlet:
    """The outlet that suits `transport`.

    Args:
        drained: called whenever `Outlet.buffered` has shrunk.
    """
    if isinstance(transport, tcp.Connection) and not transport.TLS:
        return SocketOutlet(transport, transport.getHandle(), drained)
    return TransportOutlet(transport, drained)


def _unacknowledged(handle: socket.socket) -> int:
    """Bytes in the send queue of a socket; 0 where the system does not tell."""
    try:
        (size,) = struct.unpack("i", ioctl(handle, termios.TIOCOUTQ, bytes(4)))
    except (OSError, ValueError):  # ValueError: it is closed
        return 0
    return int(size)


def set_tcp_options(transport: StreamTransport) -> None:
    """Small writes leave at once, and a peer that vanished without a word is noticed after 90 s.

    Does nothing for UNIX sockets and transports in memory.
    """
    if isinstance(transport.getPeer(), IPv4Address | IPv6Address) and ITCPTransport.providedBy(transport):
        transport.setTcpNoDelay(True)
        transport.setTcpKeepAlive(True)
        wire = getattr(transport, "socket", None)  # also of what is wrapped in TLS
        if isinstance(wire, socket.socket) and hasattr(socket, "TCP_KEEPIDLE"):
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENCE_SECONDS)
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, PROBE_SECONDS)
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, PROBES)
