"""The reactor that spends less on each event, turned by hand."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IReadDescriptor, IWriteDescriptor
from twisted.internet.main import CONNECTION_DONE, CONNECTION_LOST
from twisted.python.failure import Failure
from zope.interface import implementer

from llamaswap.polling import QuickReactor

Read = Callable[[], Any]


@implementer(IReadDescriptor, IWriteDescriptor)
class End:
    """One end of a pair of sockets."""

    def __init__(self, end: socket.socket, read: Read) -> None:
        self.socket = end
        self.read = read
        self.lost: list[type[BaseException] | None] = []
        self.written = 0

    def fileno(self) -> int:
        return self.socket.fileno()

    def logPrefix(self) -> str:
        return "end"

    def doRead(self) -> Any:
        return self.read()

    def doWrite(self) -> None:
        self.written += 1

    def connectionLost(self, reason: Failure) -> None:
        self.lost.append(reason.type)


class Table:
    """A reactor with pairs of sockets on it."""

    def __init__(self) -> None:
        self.reactor: Any = QuickReactor()  # type: ignore[no-untyped-call]  # Twisted's
        self.sockets: list[socket.socket] = []

    def pair(self, read: Read) -> tuple[End, socket.socket]:
        ours, theirs = socket.socketpair()
        self.sockets += (ours, theirs)
        end = End(ours, read)
        self.reactor.addReader(end)
        return end, theirs

    def turn(self) -> None:
        self.reactor.doIteration(0)


@pytest.fixture
def table() -> Iterator[Table]:
    made = Table()
    yield made
    made.reactor.removeAll()
    made.reactor._poller.close()
    for end in made.sockets:
        end.close()


def test_who_has_something_to_read_reads_it_and_nobody_else(table: Table) -> None:
    heard: list[str] = []
    _, first = table.pair(lambda: heard.append("first"))
    table.pair(lambda: heard.append("second"))
    first.send(b"x")

    table.turn()

    assert heard == ["first"]


def test_who_can_write_is_told(table: Table) -> None:
    end, _ = table.pair(lambda: None)
    table.reactor.addWriter(end)

    table.turn()

    assert end.written == 1


@pytest.mark.parametrize("why", [CONNECTION_DONE, CONNECTION_LOST])
def test_a_connection_that_says_it_is_over_is_let_go(table: Table, why: Exception) -> None:
    end, other = table.pair(lambda: why)
    other.send(b"x")

    table.turn()

    assert end.lost == [type(why)]
    assert end not in table.reactor.getReaders()


def test_the_far_ends_leaving_is_noticed(table: Table) -> None:
    end, other = table.pair(lambda: CONNECTION_DONE)
    other.close()

    table.turn()

    assert end.lost == [ConnectionDone]


def test_an_error_costs_its_connection_only(table: Table) -> None:
    heard: list[str] = []

    def fail() -> None:
        raise KeyError("x")

    broken, first = table.pair(fail)
    _, second = table.pair(lambda: heard.append("second"))
    first.send(b"x")
    second.send(b"x")

    table.turn()

    assert broken.lost == [KeyError]
    assert heard == ["second"]


def test_who_was_taken_off_by_an_earlier_event_hears_nothing(table: Table) -> None:
    heard: list[str] = []
    ends: list[End] = []

    def first_of_two() -> None:
        heard.append("one")
        for end in ends:
            table.reactor.removeReader(end)

    for _ in range(2):
        end, other = table.pair(first_of_two)
        ends.append(end)
        other.send(b"x")

    table.turn()

    assert heard == ["one"]
