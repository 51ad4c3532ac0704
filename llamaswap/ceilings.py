"""The limits that everybody shares: how much there may be of each, and how often that was reached.

One object for the life of the daemon, so that a reload changes a limit for
those who are there already, too.  Who keeps to a limit compares with its
`most`, and says so when it has turned somebody away; what is turned away, and
with which words, is not known here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from llamaswap.config.model import LimitsConfig

NO_LIMIT: Final = sys.maxsize

TOLD_EVERY: Final = 60.0
"""Seconds between two lines about the same limit, at least."""

HELD_SHARE: Final = 4
"""By default the bodies of all requests may hold this part of the memory: one over this number.  A body that
is changed is there twice, and one that comes in chunks a third time."""

LEAST_HELD: Final = 256 << 20
"""Bytes of bodies that may be held by default, however small the machine."""


class Ceiling:
    """One limit.

    Args:
        name: its key below `limits` in the configuration.
        told: called with the name each time it is reached.
    """

    __slots__ = ("_clock", "_log", "_since", "_tell_at", "_told", "most", "name")

    def __init__(self, name: str, clock: IReactorTime, told: Callable[[str], None]) -> None:
        self.name = name
        self.most = NO_LIMIT
        self._clock = clock
        self._told = told
        self._log = Logger()
        self._since = 0  # refusals that no line has told of
        self._tell_at = 0.0  # seconds on the clock

    def reached(self) -> None:
        """Somebody was turned away because of it: count that, and tell it now and then."""
        self._told(self.name)
        self._since += 1
        now = self._clock.seconds()
        if now >= self._tell_at:
            times, self._since = self._since, 0
            self._tell_at = now + TOLD_EVERY
            self._log.warn(
                "limits.reached limit={limit} most={most} refused={times}",
                limit=self.name,
                most=self.most,
                times=times,
            )


class Ceilings:
    """All of them.

    Args:
        limits: what the configuration says.
        clock: measures the time between lines.
        memory_bytes: of the machine that nobody uses at the start; 0 where that is unknown.

    Attributes:
        told: called with the name of a limit each time it is reached.
    """

    def __init__(self, limits: LimitsConfig, clock: IReactorTime, memory_bytes: int = 0) -> None:
        self.told: Callable[[str], None] = lambda _name: None
        self._usual_held = max(LEAST_HELD, memory_bytes // HELD_SHARE)

        def ceiling(name: str) -> Ceiling:
            return Ceiling(name, clock, lambda which: self.told(which))

        self.connections = ceiling("connections")
        self.waiting = ceiling("waiting")
        self.request_body = ceiling("requestBody")
        self.held_bodies = ceiling("heldBodies")
        self.readers = ceiling("readers")
        self.configure(limits)

    def configure(self, limits: LimitsConfig) -> None:
        """From now on these are the limits; nobody is sent away who is in already."""
        held = self._usual_held if limits.held_bodies is None else limits.held_bodies or NO_LIMIT
        self.connections.most = limits.connections or NO_LIMIT
        self.waiting.most = limits.waiting or NO_LIMIT
        self.held_bodies.most = held
        # What can never be held must not be told to come again.
        self.request_body.most = min(limits.request_body or NO_LIMIT, held)
        self.readers.most = limits.readers or NO_LIMIT
