"""Where the daemon listens: places are opened all or not at all, and remembered when they are closed.

Knows endpoint descriptions and how an opening fails; not what is served there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import DeferredList, maybeDeferred
from twisted.internet.endpoints import serverFromString
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IListeningPort
from twisted.internet.protocol import Factory

from llamaswap import leftovers
from llamaswap.inherited import SocketReactor, find, here, is_inherited, listen_on
from llamaswap.listening import shown_place


class CannotListen(Exception):
    """A place cannot be had: one line that says which, and why."""


class Places:
    """The places of one daemon.

    Args:
        descriptions: Twisted endpoint descriptions.
        reactor: listens.

    Attributes:
        ports: the open ones, in the order of their descriptions.
        addresses: of the ports, as Twisted has them; a port that was asked for as 0 is known here, and one
            that is closed already, too.
    """

    def __init__(self, descriptions: Sequence[str], reactor: SocketReactor) -> None:
        self._descriptions = descriptions
        self._reactor = reactor
        self.ports: list[IListeningPort] = []
        self.addresses: Sequence[object] = ()

    @property
    def outlive_us(self) -> bool:
        """Whether one of the sockets was opened by somebody else, and stays open without us."""
        return any(map(is_inherited, self._descriptions))

    def open(self, factory: Factory[Any]) -> None:
        """Serve at every place.

        Raises:
            CannotListen: nothing is left open then.
        """
        try:
            for description in self._descriptions:
                self.ports.append(self._open(description, factory))
        except CannotListen:
            for port in self.ports:
                port.stopListening()
            self.ports.clear()
            raise
        self.addresses = [port.getHost() for port in self.ports]

    async def close(self) -> None:
        """Let nobody in any more."""
        await DeferredList([maybeDeferred(port.stopListening) for port in self.ports])

    def shown(self) -> str:
        """Return how people write all the places."""
        return ", ".join(map(shown_place, self.addresses))

    def _open(self, description: str, factory: Factory[Any]) -> IListeningPort:
        """Listen on one endpoint; TCP, UNIX and inherited sockets are there at once or fail at once."""
        listening: list[IListeningPort] = []
        failures: list[Exception] = []
        try:
            if is_inherited(description):
                return listen_on(find(description, here()), self._reactor, factory)
            leftovers.clear(description)
            endpoint = serverFromString(self._reactor, description)
        except (ValueError, TypeError, LookupError, OSError) as error:
            raise CannotListen(f"cannot listen on {description}: {error}") from error
        opening = endpoint.listen(factory)
        opening.addCallbacks(listening.append, lambda failure: failures.append(failure.value))
        if listening:
            return listening[0]
        why = failures[0] if failures else "it is not there yet"
        if isinstance(why, CannotListenError):
            why = why.socketError
        raise CannotListen(f"cannot listen on {description}: {why}")
