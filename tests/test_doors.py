"""When the ports rest, and when they accept again."""

from __future__ import annotations

import json
import resource

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.protocol import Factory
from twisted.internet.task import Clock
from twisted.internet.tcp import Port
from twisted.internet.testing import StringTransport
from twisted.logger import capturedLogs, formatEvent
from twisted.python.failure import Failure
from typing_extensions import override

from llamaswap.ceilings import Ceilings
from llamaswap.config.model import LimitsConfig
from llamaswap.doors import MOST_DESCRIPTORS, SPARE, TOLD_EVERY, Doors, claim_descriptors, room_for
from llamaswap.http1.exchange import Exchange


class Resting(Port):
    """Only whether it accepts."""

    def __init__(self) -> None:
        super().__init__(0, Factory())
        self.accepts = True

    @override
    def stopReading(self) -> None:
        self.accepts = False

    @override
    def startReading(self) -> None:
        self.accepts = True


class House:
    """Doors with room for three, and their ports."""

    def __init__(self, limits: LimitsConfig | None = None) -> None:
        self.clock = Clock()
        self.reached: list[str] = []
        self.ceilings = Ceilings(limits or LimitsConfig(), self.clock)
        self.ceilings.told = self.reached.append
        self.doors = Doors(_never, self.clock, most=3, ceilings=self.ceilings)
        self.ports = [Resting(), Resting()]
        self.doors.guard(self.ports)
        self.clients: list[Client] = []

    def come(self, count: int = 1) -> None:
        """Let so many clients connect."""
        self.clients += [Client(self.doors) for _ in range(count)]

    def go(self, count: int = 1) -> None:
        """Let so many leave."""
        for _ in range(count):
            self.clients.pop().leave()

    def reload(self, limits: LimitsConfig) -> None:
        """Go on under other limits."""
        self.ceilings.configure(limits)
        self.doors.take_up()

    @property
    def accepting(self) -> list[bool]:
        """Of each port."""
        return [port.accepts for port in self.ports]


class Client:
    """A connection."""

    def __init__(self, doors: Doors) -> None:
        self._connection = doors.buildProtocol(None)
        self._wire = StringTransport()
        self._connection.makeConnection(self._wire)  # type: ignore[no-untyped-call]  # Twisted's

    def post(self, size: int, sent: bytes = b"") -> tuple[bytes, bytes]:
        """Announce a body of so many bytes, and send some; returns head and body of what comes back."""
        head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % size
        self._connection.dataReceived(head + sent)
        answer = self._wire.value()
        self._wire.clear()
        head, _, body = answer.partition(b"\r\n\r\n")
        return head, body

    def leave(self) -> None:
        """Close it."""
        self._connection.connectionLost(Failure(ConnectionDone()))


async def _never(_: Exchange) -> None:
    await Deferred[None]()


def test_all_ports_rest_when_it_is_full_and_accept_again_when_one_has_left() -> None:
    house = House()
    house.come(2)
    assert house.accepting == [True, True]

    house.come()
    assert house.accepting == [False, False]

    house.go()
    assert house.accepting == [True, True]


def test_those_who_were_accepted_meanwhile_have_to_leave_first() -> None:
    house = House()
    house.come(5)

    house.go(2)
    assert house.accepting == [False, False]

    house.go()
    assert house.accepting == [True, True]


def test_a_port_that_is_about_to_be_closed_is_left_alone() -> None:
    house = House()
    house.come(3)

    house.doors.guard(())
    house.go(3)

    assert house.accepting == [False, False]


def test_where_it_is_nearly_full_a_port_accepts_one_at_a_time() -> None:
    house = House()
    assert [port.numberAccepts for port in house.ports] == [1, 1]
    house.come(2)
    house.ports[0].numberAccepts = 21  # Twisted's own idea, after a turn in which all were needed

    house.clock.advance(0)

    assert [port.numberAccepts for port in house.ports] == [1, 1]


def test_it_is_told_once_a_minute_at_most() -> None:
    house = House()
    with capturedLogs() as logged:
        for _ in range(5):
            house.come(3)
            house.go(3)
        assert len(logged) == 1

        house.clock.advance(TOLD_EVERY)
        house.come(3)
    assert [formatEvent(event) for event in logged] == [
        "doors.crowded connections=3 why=the limit of descriptors"
    ] * 2


def test_the_configuration_may_allow_less_than_the_descriptors_but_not_more() -> None:
    house = House(LimitsConfig(connections=2))
    with capturedLogs() as logged:
        house.come(2)
    assert house.accepting == [False, False]
    assert formatEvent(logged[0]) == "doors.crowded connections=2 why=limits.connections"
    assert house.reached == ["connections"]

    house.reload(LimitsConfig(connections=100))
    assert house.accepting == [True, True]
    house.come()
    assert house.accepting == [False, False]


def test_a_reload_that_allows_fewer_sends_nobody_away() -> None:
    house = House()
    house.come(2)

    house.reload(LimitsConfig(connections=1))
    assert house.accepting == [False, False]

    house.go()
    assert house.accepting == [False, False]
    house.go()
    assert house.accepting == [True, True]


def test_a_body_that_is_too_large_is_refused_like_everything_else_and_counted() -> None:
    house = House(LimitsConfig(request_body=100))
    house.come(2)
    assert house.clients[0].post(100) == (b"", b"")

    head, body = house.clients[1].post(101)

    assert head.startswith(b"HTTP/1.1 413 ")
    assert b"Content-Type: application/json" in head
    assert json.loads(body)["error"]["code"] == "request_too_large"
    assert house.reached == ["requestBody"]


def test_bodies_hold_no_more_than_they_may_together_and_make_room_when_they_go() -> None:
    house = House(LimitsConfig(held_bodies=100))
    house.come(3)
    holder, refused, later = house.clients
    assert holder.post(60, bytes(50)) == (b"", b"")

    head, body = refused.post(51)
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nRetry-After: 5\r\n" in head
    assert json.loads(body)["error"]["code"] == "no_room_for_body"
    assert house.reached == ["connections", "heldBodies"]

    holder.leave()
    assert later.post(51, bytes(51)) == (b"", b"")


def test_a_body_that_could_never_be_held_is_not_told_to_come_again() -> None:
    house = House(LimitsConfig(request_body=1000, held_bodies=100))
    house.come()

    assert house.clients[0].post(101)[0].startswith(b"HTTP/1.1 413 ")


def test_who_speaks_no_http_is_told_so_in_plain_words_and_is_no_limits_business() -> None:
    house = House()
    house.come()

    head, body = house.clients[0].post(-1)

    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"Content-Type: text/plain" in head
    assert not body.startswith(b"{")
    assert house.reached == []


def test_after_a_reload_the_new_sizes_hold_for_those_who_are_connected_too() -> None:
    house = House(LimitsConfig(request_body=100))
    house.come()

    house.reload(LimitsConfig(request_body=10))

    assert house.clients[0].post(11)[0].startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("descriptors", "room"), [(96, 48), (256, 128), (1024, 1024 - SPARE), (65536, 65344)]
)
def test_some_descriptors_are_never_for_clients(descriptors: int, room: int) -> None:
    assert room_for(descriptors) == room


UNLIMITED = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "then"),
    [
        (1024, 4096, 4096),
        (1024, 1 << 20, MOST_DESCRIPTORS),
        (256, UNLIMITED, MOST_DESCRIPTORS),
        (96, 96, 96),
        (1 << 20, 1 << 20, 1 << 20),
        (UNLIMITED, UNLIMITED, MOST_DESCRIPTORS),
    ],
)
def test_what_the_system_grants_for_the_asking_is_taken(
    soft: int, hard: int, then: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))

    assert claim_descriptors() == then
    assert asked in ([], [(then, hard)])


def test_a_system_that_grants_less_than_it_says_is_taken_at_its_deeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, UNLIMITED))
    monkeypatch.setattr(resource, "setrlimit", refuse)

    assert claim_descriptors() == 256
