"""How long the box has run jobs, has loaded models and has stood idle.  Pure: time comes in as an argument.

Knows three sums of seconds.  What the box does, and when that changes, is found
out elsewhere (`llamaswap.measuring`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from llamaswap.leases import BoxState

STATES: tuple[BoxState, ...] = get_args(BoxState)


class BoxTime:
    """Adds up the time in each state; the box begins idle.

    Args:
        now: seconds on the clock that tells the later moments, too.
    """

    def __init__(self, now: float) -> None:
        self._state: BoxState = "idle"
        self._since = now
        self._seconds: dict[BoxState, float] = dict.fromkeys(STATES, 0.0)

    def turned(self, state: BoxState, now: float) -> None:
        """The box is in this state from now on."""
        if now > self._since:  # a counter must not fall, whatever the clock does
            self._seconds[self._state] += now - self._since
        self._since = now
        self._state = state

    def seconds(self, now: float) -> Mapping[BoxState, float]:
        """Return the seconds in each state up to now, the one that lasts included."""
        self.turned(self._state, now)
        return dict(self._seconds)
