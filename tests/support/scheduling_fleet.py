"""Model children that start and stop on a fake clock.

Knows how long a start and a stop take and which models are broken.  Knows
nothing of tickets; it reports each load that ends by itself, once, and stays
silent about a load that somebody else ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import Clock


class Fleet:
    """Every child of one fake machine.

    Args:
        clock: moves everything here.
        loaded: called with the model when a load ends well.
        failed: called with the model when a load ends badly.
        starting: called with the model in the moment in which its child starts.
    """

    def __init__(
        self,
        clock: Clock,
        loaded: Callable[[str], None],
        failed: Callable[[str], None],
        starting: Callable[[str], None],
    ) -> None:
        self.load_time = 2.0  # seconds
        self.stop_time = 0.0  # seconds; 0 = a stopped child is gone at once
        self.broken: set[str] = set()  # models whose load ends badly
        self.ready: set[str] = set()
        self.loads: dict[str, frozenset[str]] = {}  # loads under way, and what each waits to see stopped
        self._suspended: dict[str, frozenset[str]] = {}
        self._clock = clock
        self._loaded, self._failed, self._on_start = loaded, failed, starting
        self._starting: dict[str, IDelayedCall] = {}
        self._stopping: set[str] = set()

    def running(self) -> frozenset[str]:
        """Return the models whose child is starting, ready or stopping."""
        return frozenset(self.ready | self._starting.keys() | self._stopping)

    def stopping(self) -> frozenset[str]:
        """Return the models whose child is stopping."""
        return frozenset(self._stopping)

    def load(self, model: str, evict: frozenset[str]) -> None:
        """Stop `evict`, wait for that, then make the model ready."""
        assert model not in self.loads, f"{model} is loading already"
        self.stop(evict)
        self.loads[model] = evict
        self._proceed()

    def suspend(self) -> None:
        """Let all loads rest: a child that starts does so, but no other one will."""
        self._suspended, self.loads = self.loads, {}

    def resume(self, model: str, evict: frozenset[str]) -> None:
        """Go on with a suspended load, once `evict` is stopped."""
        assert model in self._suspended, f"{model} was not loading"
        del self._suspended[model]
        self.load(model, evict)

    def forget_suspended(self) -> None:
        """No load may be left that rests."""
        assert not self._suspended, f"{sorted(self._suspended)} rest for ever"

    def stop(self, models: Iterable[str]) -> None:
        """End these models and their loads; one that does not run is left alone."""
        for model in sorted(models):
            self.loads.pop(model, None)
            self._suspended.pop(model, None)
            self._stop_child(model)
        self._proceed()

    def _stop_child(self, model: str) -> None:
        timer = self._starting.pop(model, None)
        if timer is not None:
            timer.cancel()
        elif model not in self.ready:
            return
        self.ready.discard(model)
        if self.stop_time:
            self._stopping.add(model)
            self._clock.callLater(self.stop_time, self._stopped, model)

    def _stopped(self, model: str) -> None:
        self._stopping.remove(model)
        self._proceed()

    def _proceed(self) -> None:
        """Start each child that has no longer anything to wait for."""
        for model, evict in tuple(self.loads.items()):
            if model in self._starting or self._stopping & (evict | {model}):
                continue
            if model in self.ready:
                del self.loads[model]
                self._loaded(model)
            else:
                assert not evict & self.running(), f"{model} starts beside {evict & self.running()}"
                self._on_start(model)
                self._starting[model] = self._clock.callLater(self.load_time, self._started, model)

    def _started(self, model: str) -> None:
        del self._starting[model], self.loads[model]
        if model in self.broken:
            self._failed(model)
        else:
            self.ready.add(model)
            self._loaded(model)
