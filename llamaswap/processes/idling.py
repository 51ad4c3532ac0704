"""Notice that a server has been idle for too long.

Knows uses and the clock; not what a use is, nor what follows from idleness.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime

LOOK_AGAIN = 1.0
"""Seconds until the next look, when the time was over but somebody objected."""


class IdleTimer:
    """Counts uses, and the seconds since the last one.

    One timer that is left alone by uses, however many: when it goes off, it
    looks when it ought to have done so.
    """

    def __init__(
        self, clock: IReactorTime, ttl: float, may_expire: Callable[[], bool], expired: Callable[[], None]
    ) -> None:
        """Make a timer that is not running.

        Args:
            ttl: seconds; 0 and below mean never.
            may_expire: asked when the time is over; False puts it off.
            expired: called with the timer stopped.
        """
        self._clock = clock
        self.ttl = ttl  # a new value counts from the next look
        self._may_expire = may_expire
        self._expired = expired
        self._idle_since = 0.0
        self._running = False
        self._timer: IDelayedCall | None = None
        self.uses = 0

    def start(self) -> None:
        """Count from now, or from the end of the uses that are under way."""
        self.stop()
        if self.ttl > 0:
            self._running = True
            self._idle_since = self._clock.seconds()
            self._look_in(self.ttl)

    def stop(self) -> None:
        """Stop counting seconds; uses are counted on."""
        self._running = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def begin_use(self) -> None:
        """Somebody uses the server."""
        self.uses += 1

    def end_use(self) -> None:
        """That use is over; raises ValueError if there was none."""
        if self.uses == 0:
            raise ValueError("a use ended that had not begun")
        self.uses -= 1
        self._idle_since = self._clock.seconds()
        if self._running and self.uses == 0 and self._timer is None:
            self._look_in(self.ttl)

    def _look(self) -> None:
        self._timer = None
        remaining = self._idle_since + self.ttl - self._clock.seconds()
        if self.uses:
            return  # the end of the last use winds the timer up again
        if remaining > 0:
            self._look_in(remaining)
        elif self._may_expire():
            self._running = False
            self._expired()
        else:
            self._look_in(LOOK_AGAIN)

    def _look_in(self, seconds: float) -> None:
        self._timer = self._clock.callLater(seconds, self._look)
