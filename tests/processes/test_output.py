"""How a child's output is read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import cast

import pytest
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IReactorFDSet
from twisted.python.failure import Failure

from llamaswap.processes.output import OutputPipe
from support.processes_spawns import SpawnReactor


class Piped:
    """A pipe whose reading end is watched."""

    def __init__(self) -> None:
        reading, self.writing = os.pipe()
        os.set_blocking(reading, False)
        self.reactor = SpawnReactor()
        self.received: list[bytes] = []
        self.closed = 0
        self.pipe = OutputPipe(
            cast("IReactorFDSet", self.reactor), reading, self.received.append, self._closed
        )

    def hang_up(self) -> None:
        """The last writer goes."""
        if self.writing >= 0:
            os.close(self.writing)
            self.writing = -1

    def _closed(self) -> None:
        self.closed += 1


@pytest.fixture
def piped() -> Iterator[Piped]:
    piped = Piped()
    yield piped
    piped.hang_up()
    piped.pipe.close()


def test_what_is_written_is_handed_on(piped: Piped) -> None:
    os.write(piped.writing, b"hello")

    piped.pipe.doRead()

    assert piped.received == [b"hello"]


def test_a_wakeup_for_nothing_does_nothing(piped: Piped) -> None:
    piped.pipe.doRead()

    assert piped.received == []
    assert piped.closed == 0


def test_the_end_is_told_once_and_frees_the_descriptor(piped: Piped) -> None:
    descriptor = piped.pipe.fileno()
    piped.hang_up()

    piped.pipe.doRead()
    piped.pipe.connectionLost(Failure(ConnectionDone()))

    assert piped.closed == 1
    assert piped.reactor.readers == set()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_hangup_that_only_the_reactor_saw_is_the_end_too(piped: Piped) -> None:
    piped.hang_up()

    piped.pipe.connectionLost(Failure(ConnectionDone()))

    assert piped.closed == 1


def test_closing_it_ourselves_is_not_the_childs_end(piped: Piped) -> None:
    piped.pipe.close()
    piped.pipe.close()

    assert piped.closed == 0
    assert piped.pipe.fileno() == -1
    assert piped.pipe.logPrefix()
