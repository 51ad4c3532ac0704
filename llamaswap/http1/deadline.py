"""A deadline that moves with every request and costs a timer only now and then.

Setting it writes a number; the one delayed call behind it is looked at again
when it fires.  Knows nothing of what the deadline is for.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from twisted.internet.interfaces import IDelayedCall, IReactorTime


class Deadline:
    """One movable deadline; `expired` is called once for each time it is reached."""

    __slots__ = ("_at", "_call", "_clock", "_expired", "_fires")

    def __init__(self, clock: IReactorTime, expired: Callable[[], None]) -> None:
        self._clock = clock
        self._expired = expired
        self._at = inf
        self._fires = inf  # when the delayed call comes due
        self._call: IDelayedCall | None = None

    def set(self, seconds: float) -> None:
        """Expire `seconds` from now, instead of whenever it was."""
        now = self._clock.seconds()
        self._at = now + seconds
        if self._at < self._fires:
            self._arm(seconds)

    def clear(self) -> None:
        """Expire never; a delayed call that is under way will find nothing to do."""
        self._at = inf

    def stop(self) -> None:
        """Let go of the clock for good."""
        self._at = inf
        if self._call is not None:
            self._call.cancel()
            self._call = None
            self._fires = inf

    def _arm(self, seconds: float) -> None:
        self._fires = self._at
        if self._call is None:
            self._call = self._clock.callLater(seconds, self._look)
        else:
            self._call.reset(seconds)

    def _look(self) -> None:
        self._call = None
        self._fires = inf
        left = self._at - self._clock.seconds()
        if left == inf:
            return
        if left > 0:
            self._arm(left)
        else:
            self._at = inf
            self._expired()
