"""Telling a client that waits from one that has left, by a socket that says what a test wants."""

from __future__ import annotations

import socket
from typing import cast

import pytest
from twisted.internet.task import Clock

from llamaswap.http1.halfclose import LOOK_EVERY, PROBE_EVERY, Lookout, Probe, is_half_open
from llamaswap.http1.writing import CONTINUE

ESTABLISHED, CLOSED, CLOSE_WAIT = 1, 7, 8


class Handle:
    """A socket in some state."""

    def __init__(self) -> None:
        self.state = CLOSE_WAIT

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        assert (level, option, size) == (socket.IPPROTO_TCP, socket.TCP_INFO, 1)
        return bytes([self.state])


class Room:
    """One probe, and what it did."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.handle = Handle()
        self.sent: list[bytes] = []
        self.left: list[float] = []
        self.probe = Probe(
            cast("socket.socket", self.handle),
            self.clock,
            self.sent.append,
            lambda: self.left.append(self.clock.seconds()),
        )

        self.unheard = True
        self.lookout = Lookout(
            cast("socket.socket", self.handle),
            self.clock,
            self.sent.append,
            lambda: self.unheard,
            lambda: self.left.append(self.clock.seconds()),
        )

    def passes(self, seconds: float, step: float = 0.05) -> None:
        self.clock.pump([step] * round(seconds / step))


def test_a_client_that_only_waits_is_asked_now_and_then() -> None:
    room = Room()

    assert room.probe.start()
    room.passes(PROBE_EVERY * 2 + 2)

    assert room.sent == [CONTINUE] * 3
    assert room.left == []


def test_a_client_whose_reset_is_there_at_once_is_known_to_have_left() -> None:
    room = Room()
    room.handle.state = CLOSED

    assert not room.probe.start()

    assert room.left == []
    assert room.clock.getDelayedCalls() == []


@pytest.mark.parametrize("after", [0.001, 0.04, 0.2, 5.0])
def test_a_reset_on_its_way_is_noticed_soon_after_it_came(after: float) -> None:
    room = Room()
    room.probe.start()
    room.passes(after, step=0.001)
    room.handle.state = CLOSED

    room.passes(1.1, step=0.001)

    assert len(room.left) == 1
    assert room.left[0] - after <= max(0.5, 1.0)
    assert room.clock.getDelayedCalls() == []


def test_nothing_is_asked_of_a_client_that_is_being_answered() -> None:
    room = Room()
    room.probe.start()

    room.probe.stop()
    room.handle.state = CLOSED
    room.passes(PROBE_EVERY + 2)

    assert room.sent == [CONTINUE]
    assert room.left == []


def test_a_client_that_is_not_read_from_is_asked_only_once_it_has_ended_its_side() -> None:
    room = Room()
    room.handle.state = ESTABLISHED
    room.lookout.start()
    room.lookout.start()
    room.passes(5.0)
    assert room.sent == []

    room.handle.state = CLOSE_WAIT
    room.passes(PROBE_EVERY + 2)
    assert room.sent == [CONTINUE] * 2
    room.handle.state = CLOSED
    room.passes(LOOK_EVERY + 0.1)

    assert len(room.left) == 1
    assert room.clock.getDelayedCalls() == []


@pytest.mark.parametrize("heard", [True, False])
def test_nobody_looks_any_more_once_it_is_read_from_or_gone(heard: bool) -> None:
    room = Room()
    room.lookout.start()

    if heard:
        room.unheard = False
    else:
        room.lookout.stop()
    room.passes(2 * LOOK_EVERY)

    assert (room.sent, room.left, room.clock.getDelayedCalls()) == ([], [], [])


def test_real_sockets_say_whether_their_other_side_has_only_ended_its_sending() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname(), timeout=5)
        theirs, _ = listener.accept()
        with ours, theirs:
            assert not is_half_open(theirs)
            ours.shutdown(socket.SHUT_WR)
            assert theirs.recv(1) == b""
            assert is_half_open(theirs)
            ours.close()
            theirs.send(CONTINUE)
            assert not is_half_open(theirs)


def test_a_socket_without_such_a_state_counts_as_closed() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert not is_half_open(one)
