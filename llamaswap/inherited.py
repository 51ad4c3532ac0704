"""Listening sockets that somebody opened before us and left to us: systemd's socket activation.

Whoever opened them keeps them open, so a connection made while no daemon runs waits in
the kernel for the next one.  Knows how they are counted and taken over; not what is
served on them, nor when to look for them.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from twisted.internet.abstract import FileDescriptor
from twisted.internet.address import UNIXAddress
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IListeningPort, IReactorFDSet, IReactorSocket
from twisted.internet.main import CONNECTION_DONE
from twisted.internet.protocol import Factory, ServerFactory
from twisted.python.failure import Failure
from typing_extensions import override
from zope.interface import implementer

FIRST = 3
"""The first descriptor that is left; the others follow it without a gap."""

LAST_STANDARD = 2
"""Standard error's descriptor."""

BY_PLACE = "systemd"
BY_NUMBER = "fd"

ACCEPTED_AT_ONCE = 100  # connections in one turn of the reactor, as Twisted's own ports take
ACCEPTED_MORE = 20  # in the next one, when so many were there


class NotInherited(LookupError):
    """There is no such socket among those that were left to us: one line that says why."""


class SocketReactor(IReactorSocket, IReactorFDSet):
    """What it takes to listen on a socket that is there already."""


@dataclass(frozen=True, slots=True)
class Inherited:
    """One socket that was left to us."""

    descriptor: int
    name: str = ""  # FileDescriptorName= of the unit, by default the unit's name


def sockets_of(environ: Mapping[str, str], pid: int) -> Sequence[Inherited]:
    """Return what an environment says was left to the process `pid`; nothing, if it was meant for another.

    Names are optional: activators other than systemd tend not to give any.
    """
    count = environ.get("LISTEN_FDS", "")
    if environ.get("LISTEN_PID") != str(pid) or not (count.isascii() and count.isdigit()):
        return ()
    names = environ.get("LISTEN_FDNAMES", "").split(":")
    if len(names) != int(count):
        names = [""] * int(count)
    return tuple(Inherited(FIRST + index, name) for index, name in enumerate(names))


def first_environment() -> Mapping[str, str]:
    """Return the environment that this process was started with.

    Twisted takes the variables out of `os.environ` once its endpoints are imported, which may
    have been long ago, and wants a name for each socket.
    """
    try:
        entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return os.environ
    pairs = (os.fsdecode(entry).partition("=") for entry in entries if entry)
    return {name: value for name, _, value in pairs}


def keep_from_children() -> None:
    """Mark what was left open to us, whoever did so, as not for children.

    Twisted closes in each child what is not marked so, and the C library refuses to close a number above
    the limit of descriptors: with one such, a child could not even be started.
    """
    with suppress(OSError):
        for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names are all that is wanted
            if (descriptor := int(name)) > LAST_STANDARD:
                with suppress(OSError):  # the one that lists them
                    os.set_inheritable(descriptor, False)


def descriptions_of(sockets: Sequence[Inherited]) -> Sequence[str]:
    """Return the endpoint descriptions of all of them."""
    return [f"{BY_PLACE}:index={index}" for index, _ in enumerate(sockets)]


def here() -> Sequence[Inherited]:
    """Return what was left to this very process."""
    return sockets_of(first_environment(), os.getpid())


def is_inherited(description: str) -> bool:
    """Return whether an endpoint description means a socket that is there already."""
    return description.partition(":")[0] in (BY_PLACE, BY_NUMBER)


def find(description: str, sockets: Sequence[Inherited]) -> Inherited:
    """Return the socket that `systemd:index=0`, `systemd:name=web` or `fd:3` means.

    Args:
        description: `domain=` may be in it, as Twisted wants it; the socket itself knows better.
            The number of a descriptor is believed, whoever has left it.

    Raises:
        NotInherited: there is none like that.
        ValueError: what should be a descriptor's number is none.
    """
    kind, _, rest = description.partition(":")
    if kind == BY_NUMBER:
        return Inherited(int(rest))
    fields = dict(_field(text) for text in rest.split(":") if text)
    index, name = fields.get("index"), fields.get("name")
    if (index is None) == (name is None) or not fields.keys() <= {"domain", "index", "name"}:
        raise NotInherited("say which socket: index=0 or name=NAME")
    for place, found in enumerate(sockets):
        if index == str(place) or (name is not None and name == found.name):
            return found
    raise NotInherited(f"{len(sockets)} inherited, and none with this index or name")


def listen_on(inherited: Inherited, reactor: SocketReactor, factory: Factory[Any]) -> IListeningPort:
    """Serve on an inherited socket; the descriptor is taken over, and a second call fails.

    Raises:
        OSError: it is no listening stream socket, or taken already.
    """
    taken = socket.socket(fileno=os.dup(inherited.descriptor))
    try:
        if taken.type != socket.SOCK_STREAM or not taken.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise OSError("not a listening stream socket")
        taken.setblocking(False)
        port: IListeningPort
        if taken.family == socket.AF_UNIX:
            port = UnixPort(taken.dup(), reactor, factory)
            port.startListening()
        else:
            port = reactor.adoptStreamPort(taken.fileno(), taken.family, cast("ServerFactory[Any]", factory))
    finally:
        taken.close()
    os.close(inherited.descriptor)
    return port


def _field(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


@implementer(IListeningPort)
class UnixPort(FileDescriptor):
    """A listening UNIX socket that belongs to somebody else.

    Twisted's own would change the mode of its path, and remove it in the end: whoever opened the
    socket would listen where nobody finds him.
    """

    def __init__(self, listening: socket.socket, reactor: SocketReactor, factory: Factory[Any]) -> None:
        super().__init__(reactor)
        self._socket = listening
        self._sockets = reactor
        self._factory = cast("ServerFactory[Any]", factory)  # any factory will do, whatever its class
        self._closed: Deferred[None] | None = None
        self.numberAccepts = ACCEPTED_AT_ONCE  # whoever wants fewer sets it, as with Twisted's own ports

    @override
    def fileno(self) -> int:
        return self._socket.fileno()

    def startListening(self) -> None:
        """Accept from now on."""
        self._factory.doStart()
        self.connected = 1
        self.startReading()  # type: ignore[no-untyped-call]  # Twisted's

    def stopListening(self) -> Deferred[None]:
        """Accept no more; the socket stays open for whoever left it to us."""
        if self._closed is None:
            self._closed = Deferred()
            self.loseConnection()
        return self._closed if self.connected else succeed(None)

    @override
    def getHost(self) -> UNIXAddress:
        """Return where it listens."""
        return UNIXAddress(self._socket.getsockname() or None)

    @override
    def doRead(self) -> None:
        for accepted in range(self.numberAccepts):
            try:
                connection, _ = self._socket.accept()
            except OSError:  # nobody is there, or there is no room for him
                self.numberAccepts = max(accepted, 1)
                return
            with connection:
                connection.setblocking(False)
                self._sockets.adoptStreamConnection(connection.fileno(), socket.AF_UNIX, self._factory)
        self.numberAccepts += ACCEPTED_MORE

    @override
    def loseConnection(self) -> None:
        """Accept no more."""
        self.stopReading()  # type: ignore[no-untyped-call]  # Twisted's
        self.connectionLost(Failure(CONNECTION_DONE))

    @override
    def connectionLost(self, reason: Failure) -> None:
        super().connectionLost(reason)  # type: ignore[no-untyped-call]  # Twisted's
        self._socket.close()
        self._factory.doStop()
        if self._closed is not None:
            self._closed.callback(None)
