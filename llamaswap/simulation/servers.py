"""The model servers of a simulated box: which run, which are ready, and whom each lets wait.

Knows no time: a load is begun and ended by whoever keeps the clock.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from llamaswap.scheduling.vocabulary import Ticket
from llamaswap.simulation.scenario import Scenario


class Server:
    """One model's server: so many requests at once, the others in the order in which they came."""

    __slots__ = ("_most", "_queue", "_working")

    def __init__(self, most: int) -> None:
        self._most = most
        self._working = 0
        self._queue: OrderedDict[int, Ticket] = OrderedDict()  # a dict finds its first one slowly after many

    def take(self, ticket: Ticket) -> bool:
        """Take a request; False if it has to wait inside."""
        if self._working < self._most:
            self._working += 1
            return True
        self._queue[ticket.number] = ticket
        return False

    def done(self) -> Ticket | None:
        """End a request; returns the one that begins instead."""
        if self._queue:
            return self._queue.popitem(last=False)[1]
        self._working -= 1
        return None

    def drop(self, ticket: Ticket) -> None:
        """Forget a request that waits inside; nothing happens if it is not there."""
        self._queue.pop(ticket.number, None)


class Fleet:
    """All servers of a box, and what the scheduler may know of them."""

    def __init__(self, scenario: Scenario) -> None:
        self.running = self.ready = frozenset(scenario.resident)
        self.loads: dict[str, int] = {}  # under way: model -> which load it is
        self._servers = {model: Server(scenario.parallel_of(model)) for model in scenario.config.models}

    def __getitem__(self, model: str) -> Server:
        return self._servers[model]

    def stop(self, models: Iterable[str]) -> None:
        """Stop these at once, loads under way included."""
        gone = frozenset(models)
        self.running -= gone
        self.ready -= gone
        for model in gone & self.loads.keys():
            del self.loads[model]

    def load(self, model: str, number: int) -> None:
        """Begin a load; `number` tells it from later ones."""
        self.running |= {model}
        self.ready -= {model}
        self.loads[model] = number

    def loaded(self, model: str) -> None:
        """End the load that is under way: the model is ready."""
        del self.loads[model]
        self.ready |= {model}
