"""The servers of all local models, through every change of the configuration.

A server stays as long as its model does.  One whose model is gone ends when its
last use has ended; until nothing of it runs it still counts, so that whoever
plans who may run beside whom knows of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from twisted.internet.defer import DeferredList
from typing_extensions import override

from llamaswap.config.model import ModelConfig
from llamaswap.processes.lifecycle import State
from llamaswap.processes.server import ModelServer

Changed = Callable[[str, State, State], None]
Moved = Callable[[], None]
MakeServer = Callable[[ModelConfig, Changed, Moved], ModelServer]


class Fleet(Mapping[str, ModelServer]):
    """Model id to server, sorted when it was last configured; leaving ones included.

    Args:
        make: builds a stopped server that reports its changes, and each move, to what it is given.
        changed: told of every change of state, after the fleet itself has taken note.
    """

    def __init__(self, make: MakeServer, changed: Changed) -> None:
        self._make = make
        self._tell = changed
        self._servers: dict[str, ModelServer] = {}
        self._leaving: set[str] = set()
        self.version = 0  # grows whenever a server's state changes, or which servers there are

    def configure(self, models: Mapping[str, ModelConfig]) -> None:
        """Have a server for exactly these models; those that need no other child keep theirs."""
        for name in self._servers.keys() - models.keys():
            self._leaving.add(name)
            self._servers[name].retire()
        for name, model in models.items():
            if name in self._servers:
                self._leaving.discard(name)
                self._servers[name].reconfigure(model)
            else:
                self._servers[name] = self._make(model, self._changed, self._moved)
        self._forget_gone()
        self._servers = {name: self._servers[name] for name in sorted(self._servers)}
        self._moved()

    def leaving(self, name: str) -> bool:
        """Return whether a model is gone from the configuration although something of it still runs."""
        return name in self._leaving

    def states(self) -> dict[str, str]:
        """Return the state of every configured model's process, by id."""
        return {
            name: server.state.value for name, server in self._servers.items() if name not in self._leaving
        }

    async def shutdown(self, grace: float) -> None:
        """Stop all for good, each within `grace` seconds; returns when nothing of them runs."""
        await DeferredList([server.shutdown(grace) for server in self._servers.values()])

    def _moved(self) -> None:
        self.version += 1

    def _changed(self, name: str, old: State, new: State) -> None:
        self._forget_gone()
        self._tell(name, old, new)

    def _forget_gone(self) -> None:
        for name in tuple(self._leaving):
            if self._servers[name].state is State.STOPPED:
                self._leaving.discard(name)
                del self._servers[name]
                self._moved()

    @override
    def __getitem__(self, name: str) -> ModelServer:
        return self._servers[name]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._servers)

    @override
    def __len__(self) -> int:
        return len(self._servers)
