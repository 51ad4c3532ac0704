"""Let clients in only while enough descriptors are left for the work that they ask for.

Each request that waits holds a connection.  Once those have taken the last
descriptor no model can be started or reached for any of them, so the ports
rest before it comes to that: newcomers wait in the kernel's queue.

Knows also how large a body may be, and all of them together, and what a
client is told whose body is too large.
"""

from __future__ import annotations

import resource
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from twisted.internet.interfaces import IListeningPort, IReactorTime
from twisted.internet.tcp import Port
from twisted.logger import Logger
from typing_extensions import override

from llamaswap.ceilings import Ceilings
from llamaswap.errors import BodiesFull, BodyTooLarge
from llamaswap.http1.body import NoRoom, TooLarge
from llamaswap.http1.hosting import Fields, Hosted
from llamaswap.http1.parsing import Malformed
from llamaswap.http1.server import Handler, ServerFactory
from llamaswap.inherited import UnixPort
from llamaswap.rendering import render

SPARE = 192
"""Descriptors kept from clients: models, the connections to them, the store and the logs need some."""

NEAR = 256
"""With so few connections to go a port accepts one by one, instead of a hundred or more in a turn of
the reactor, in the middle of which it can't be stopped."""

TOLD_EVERY = 60.0  # seconds between two lines about it, at least


MOST_DESCRIPTORS = 65_536
"""More are not asked for, even where there is no limit."""

USUAL_DESCRIPTORS = 1024  # what a process has that does not ask


def claim_descriptors() -> int:
    """Take the descriptors that the system grants for the asking, as programs in Go do.

    Returns:
        How many this process may have now.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_DESCRIPTORS
    most = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft < most:
        with suppress(ValueError, OSError):  # a system may grant less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            return most
    return soft


def room_for(descriptors: int) -> int:
    """Return how many connections may be open where a process may have so many descriptors."""
    return max(descriptors // 2, descriptors - SPARE)


class Doors(ServerFactory):
    """A server that stops accepting when it has as many connections as it may.

    Args:
        most: connections that the descriptors allow; those that come in one turn of the
            reactor may be a few more.
        ceilings: how many connections and bytes of bodies the configuration allows.
    """

    _log = Logger()

    def __init__(self, handler: Handler, clock: IReactorTime, *, most: int, ceilings: Ceilings) -> None:
        super().__init__(handler, clock)
        self._room_for = self._most = most
        self._ceilings = ceilings
        self._ports: Sequence[Port | UnixPort] = ()
        self._resting = self._slowing = False
        self._tell_at = 0.0  # seconds on the clock
        self.take_up()

    def take_up(self) -> None:
        """Keep to what the ceilings say now: the configuration is another.

        Who is connected stays, and a body that has begun to come may be as large as it might before.
        """
        ceilings = self._ceilings
        self._most = min(self._room_for, ceilings.connections.most)
        self.limits = replace(self.limits, body_bytes=ceilings.request_body.most)
        self.room.most = ceilings.held_bodies.most
        if self.connections >= self._most:
            self._rest()
        else:
            self._wake()

    def guard(self, ports: Iterable[IListeningPort]) -> None:
        """Let these rest when it gets crowded, instead of any before; none, before they are closed."""
        self._ports = [port for port in ports if isinstance(port, Port | UnixPort)]
        self._slow_down()

    @override
    def opened(self, connection: Hosted) -> None:
        super().opened(connection)
        if self.connections + NEAR < self._most:
            return
        if not self._slowing:
            self._slowing = True
            self.clock.callLater(0, self._slow_down)
        if self.connections >= self._most:
            self._rest()

    @override
    def closed(self, connection: Hosted) -> None:
        super().closed(connection)
        if self._resting and self.connections < self._most:
            self._wake()

    @override
    def refusal(self, error: Malformed) -> tuple[Fields, bytes]:
        """As any other refusal of ours where it is about a limit, which is counted; else plain words."""
        if isinstance(error, TooLarge):
            self._ceilings.request_body.reached()
            answer = render(BodyTooLarge())
        elif isinstance(error, NoRoom):
            self._ceilings.held_bodies.reached()
            answer = render(BodiesFull())
        else:
            return super().refusal(error)
        return answer.headers, answer.body

    def _rest(self) -> None:
        if not self._resting:
            self._resting = True
            self._tell()
            for port in self._ports:
                port.stopReading()  # type: ignore[no-untyped-call]  # Twisted's

    def _wake(self) -> None:
        if self._resting:
            self._resting = False
            for port in self._ports:
                port.startReading()  # type: ignore[no-untyped-call]  # Twisted's

    def _slow_down(self) -> None:
        self._slowing = False
        for port in self._ports:
            port.numberAccepts = 1  # it makes that more by itself when all of them were needed

    def _tell(self) -> None:
        self._ceilings.told(self._ceilings.connections.name)
        now = self.clock.seconds()
        if now >= self._tell_at:
            self._tell_at = now + TOLD_EVERY
            own = self._most < self._room_for
            self._log.warn(
                "doors.crowded connections={connections} why={why}",
                connections=self.connections,
                why="limits.connections" if own else "the limit of descriptors",
            )
