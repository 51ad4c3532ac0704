"""Who gets which port in place of `${PORT}`.

Knows ids and numbers only: nothing is asked of this machine, on which a port may be taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

NO_PORTS: Mapping[str, int] = MappingProxyType({})


class Ports:
    """Hands out consecutive ports, but leaves every model the one it has.

    Args:
        first: the lowest port.
        in_use: by model id.  Nobody else gets one of these, whether or not its owner still
            asks for it: the child of a model that has gone may be slow to end.
    """

    def __init__(self, first: int, in_use: Mapping[str, int] = NO_PORTS) -> None:
        self.given: dict[str, int] = {}  # by model id
        self._first = first
        self._next = first
        self._in_use = in_use
        self._occupied = set(in_use.values())
        self._kept: set[int] = set()

    def take(self, model_id: str) -> int:
        """Return the model's port, which is the one it has unless that is too low or another's."""
        port = self._in_use.get(model_id)
        if port is None or port < self._first or port in self._kept:
            port = self._next_free()
        self._kept.add(port)
        self.given[model_id] = port
        return port

    def _next_free(self) -> int:
        while self._next in self._occupied:
            self._next += 1
        self._next += 1
        return self._next - 1
