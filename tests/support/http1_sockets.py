"""Real sockets on loopback in the hands of a test."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

import pytest_twisted  # type: ignore[import-untyped]  # ships no types
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from typing_extensions import override

from llamaswap.http1.outlet import StreamTransport

P = ParamSpec("P")

DEADLINE = 10.0  # seconds that anything may take on a busy machine


def reactor() -> Any:
    """The one that pytest-twisted runs."""
    from twisted.internet import reactor as running

    return running


def finish(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run the reactor until this is done; for fixtures."""
    pytest_twisted.blockon(Deferred.fromCoroutine(coroutine))


def on_sockets(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, Any]:
    """Run an async test on the reactor."""
    decorated: Callable[P, Any] = pytest_twisted.ensureDeferred(test)
    return decorated


class Talk(Protocol):
    """One end of a connection in the hands of a test."""

    transport: StreamTransport

    def __init__(self) -> None:
        self.received = bytearray()
        self.lost_at: float | None = None
        self.lost_how: type[BaseException] | None = None
        self.changed: list[Callable[[], None]] = []

    @override
    def dataReceived(self, data: bytes) -> None:
        self.received += data
        self._tell()

    @override
    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.lost_at = reactor().seconds()
        self.lost_how = reason.type
        self._tell()

    def _tell(self) -> None:
        for callback in tuple(self.changed):
            callback()


async def until(condition: Callable[[], object], *talks: Talk) -> None:
    """Wait until `condition` holds; it is looked at whenever one of the talks goes on."""
    reached: Deferred[None] = Deferred()

    def look() -> None:
        if condition() and not reached.called:
            reached.callback(None)

    for talk in talks:
        talk.changed.append(look)
    look()
    reached.addTimeout(DEADLINE, reactor())
    await reached
