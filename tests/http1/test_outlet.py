"""Bytes on their way out; the plain kind is tried on a real pair of sockets and Twisted's own connection."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import cast

import pytest
from twisted.internet import main, tcp
from twisted.internet.protocol import Protocol
from twisted.internet.task import Clock
from twisted.internet.testing import MemoryReactorClock

from llamaswap.http1.outlet import (
    HANDOVER_BYTES,
    Outlet,
    SocketOutlet,
    StreamTransport,
    TransportOutlet,
    open_outlet,
)
from support.http1_wires import Wire


class Pair:
    """A connection of Twisted's, whose reactor is this test, and the socket at its far end."""

    def __init__(self) -> None:
        near, self.far = socket.socketpair()
        self.far.setblocking(False)
        self.reactor = MemoryReactorClock()
        self.connection = tcp.Connection(near, Protocol(), self.reactor)
        self.connection.connected = 1
        self.drained = 0
        self.outlet: Outlet = open_outlet(cast("StreamTransport", self.connection), self._note)
        self.end: object = None

    def _note(self) -> None:
        self.drained += 1

    def receive(self) -> bytes:
        """What is there."""
        try:
            return self.far.recv(1 << 20)
        except BlockingIOError:
            return b""

    def waits(self) -> bool:
        """Whether the reactor was asked to say when the socket takes more."""
        return self.connection in self.reactor.getWriters()

    def run(self) -> bytes:
        """Let the reactor and the far end work until nothing is left to write."""
        received = [self.receive()]
        while self.waits() and self.end is None:
            self.end = self.connection.doWrite()
            received.append(self.receive())
        while piece := self.receive():
            received.append(piece)
        return b"".join(received)


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.far.close()
    pair.connection.socket.close()


def test_what_the_kernel_takes_leaves_at_once_and_without_the_reactor(pair: Pair) -> None:
    assert isinstance(pair.outlet, SocketOutlet)

    pair.outlet.write(b"hello")

    assert pair.receive() == b"hello"
    assert not pair.waits()
    assert pair.outlet.buffered == 0


def test_what_the_kernel_does_not_take_follows_in_order(pair: Pair) -> None:
    pieces = [bytes([n]) * 100_001 for n in range(50)]

    for piece in pieces[:40]:
        pair.outlet.write(piece)
    pair.outlet.write_all(pieces[40:])
    assert pair.waits()
    assert 0 < pair.outlet.buffered < 5_000_050

    assert pair.run() == b"".join(pieces)
    assert pair.outlet.buffered == 0
    assert not pair.waits()
    assert pair.drained > 0


def test_once_everything_is_out_writes_leave_at_once_again(pair: Pair) -> None:
    pair.outlet.write(bytes(3_000_000))
    pair.run()

    pair.outlet.write(b"again")

    assert not pair.waits()
    assert pair.receive() == b"again"


def test_twisted_asks_for_more_exactly_when_it_has_nothing_left(pair: Pair) -> None:
    pair.outlet.write(bytes(3_000_000))
    before = pair.outlet.buffered
    while not pair.drained:
        pair.receive()
        assert pair.connection.doWrite() is None

    assert pair.outlet.buffered <= before - HANDOVER_BYTES


def test_closing_waits_for_what_is_still_to_go(pair: Pair) -> None:
    pair.outlet.write(bytes(3_000_000))

    pair.outlet.close()
    pair.outlet.write(b"too late")

    assert len(pair.run()) == 3_000_000
    assert pair.end is main.CONNECTION_DONE


def test_closing_an_idle_outlet_closes_the_connection(pair: Pair) -> None:
    pair.outlet.close()
    pair.outlet.close()
    pair.run()

    assert pair.end is main.CONNECTION_DONE


def test_a_broken_connection_is_left_to_the_transport_to_find(pair: Pair) -> None:
    pair.far.close()

    pair.outlet.write(b"hello")

    assert pair.connection.doWrite() is main.CONNECTION_LOST
    pair.outlet.stopProducing()
    pair.outlet.write(b"more")
    assert pair.outlet.buffered == 0


def test_small_pieces_leave_together(pair: Pair) -> None:
    pair.outlet.write_all([b"head\r\n", b"", b"body"])

    assert pair.receive() == b"head\r\nbody"


def test_any_other_transport_is_written_to_until_it_has_enough() -> None:
    wire = Wire(Clock())
    drained: list[int] = []
    outlet = open_outlet(cast("StreamTransport", wire), lambda: drained.append(outlet.buffered))
    assert isinstance(outlet, TransportOutlet)

    outlet.write(b"one")
    outlet.pauseProducing()
    outlet.write(b"two")
    outlet.write(b"three")
    assert wire.io.getvalue() == b"one"
    assert outlet.buffered == 8

    outlet.close()
    closed_early = wire.disconnecting
    outlet.resumeProducing()
    assert wire.io.getvalue() == b"onetwothree"
    assert drained == [0]
    assert (closed_early, wire.disconnecting) == (False, True)
    assert wire.producer is None


def test_a_large_piece_is_handed_to_any_other_transport_little_by_little() -> None:
    wire = Wire(Clock())
    outlet = open_outlet(cast("StreamTransport", wire), lambda: None)
    wire.room_bytes = 2 * HANDOVER_BYTES
    data = bytes(range(256)) * 1024 + b"end"

    outlet.write(data)

    assert len(wire.io.getvalue()) == 2 * HANDOVER_BYTES
    assert outlet.buffered == len(data) - 2 * HANDOVER_BYTES
    wire.room_bytes = None
    assert isinstance(outlet, TransportOutlet)
    outlet.resumeProducing()
    assert wire.io.getvalue() == data
    assert outlet.buffered == 0
