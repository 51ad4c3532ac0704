"""Servers whose connection broke: are they gone, or was it only the connection?

A child that dies closes its connections a few milliseconds before its exit is
known.  Whoever is given its server in between is refused for nothing; so
nobody is, until the exit is known or has not come for a while.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime

SETTLE = 0.25
"""Seconds after which a server that has not ended is taken to live on."""


class Doubts:
    """The models whose server is in doubt, and who waits until they are not.

    Args:
        clock: measures `SETTLE`.
        dispelled: called when a server is taken to live on, after those who waited.
    """

    def __init__(self, clock: IReactorTime, dispelled: Callable[[], None] = lambda: None) -> None:
        self._clock = clock
        self._dispelled = dispelled
        self._ends: dict[str, IDelayedCall] = {}
        self._waiters: dict[str, list[Deferred[None]]] = {}
        self.version = 0  # grows whenever a doubt begins or ends

    def __contains__(self, model: str) -> bool:
        return model in self._ends

    def begin(self, model: str) -> None:
        """A connection to this model's server broke; a doubt under way is not prolonged."""
        if model not in self._ends:
            self._ends[model] = self._clock.callLater(SETTLE, self._lives_on, model)
            self.version += 1

    def end(self, model: str) -> None:
        """Its end has been noticed, or did not come; nothing happens if there was no doubt."""
        end = self._ends.pop(model, None)
        if end is None:
            return
        self.version += 1
        if end.active():
            end.cancel()
        for waiter in self._waiters.pop(model, ()):
            if not waiter.called:  # cancelled otherwise
                waiter.callback(None)

    def over(self, model: str) -> Deferred[None]:
        """Return a Deferred that fires when there is no doubt (any more); it may be cancelled."""
        waiter: Deferred[None] = Deferred()
        if model in self._ends:
            self._waiters.setdefault(model, []).append(waiter)
        else:
            waiter.callback(None)
        return waiter

    def _lives_on(self, model: str) -> None:
        self.end(model)
        self._dispelled()

    def clear(self) -> None:
        """End every doubt: the daemon ends."""
        for model in tuple(self._ends):
            self.end(model)
