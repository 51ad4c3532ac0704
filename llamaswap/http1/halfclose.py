"""A client that sends nothing more: has it left, or does it only wait for its answer?

Both look the same, an end of its bytes, until it is sent something: a machine
whose program has closed the connection answers with a reset.  Ahead of a
response HTTP allows to say ``100 Continue`` at any time, so that is what is sent.

One that is not read from at the moment is not even heard to end: whether it is there
has to be looked up.

Knows sockets; what follows from the answer is the connection's part.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from typing_extensions import override

from llamaswap.http1.writing import CONTINUE

LOOKS: Final = (0.002, 0.01, 0.05, 0.25)
"""Seconds between the first looks after a probe: as long as the way back may take. Then one a second."""

PROBE_EVERY: Final = 15.0
"""Seconds: a client that waits may be closed later, and nobody would tell."""

LOOK_EVERY: Final = 1.0  # seconds between two looks at a client that is not read from

_CLOSED: Final = 7  # TCP_CLOSE of Linux: reset
_CLOSE_WAIT: Final = 8  # TCP_CLOSE_WAIT: the other side has ended, ours has not


class _Watch:
    """Looks at one client now and then, until `stop`.

    Args:
        handle: its socket.
        clock: measures.
        write: puts bytes on its connection.
        gone: called once, when it turns out to have left; not within `start`.
    """

    __slots__ = ("_clock", "_due", "_gone", "_handle", "_next_probe", "_write")

    def __init__(
        self,
        handle: socket.socket,
        clock: IReactorTime,
        write: Callable[[bytes], object],
        gone: Callable[[], None],
    ) -> None:
        self._handle = handle
        self._clock = clock
        self._write = write
        self._gone = gone
        self._due: IDelayedCall | None = None
        self._next_probe = 0.0

    def stop(self) -> None:
        """Look no more: it is being answered, or known to have left."""
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _ask(self) -> None:
        self._next_probe = self._clock.seconds() + PROBE_EVERY
        self._write(CONTINUE)


class Probe(_Watch):
    """Asks one silent client again and again until `stop`; takes what `_Watch` takes."""

    __slots__ = ("_look",)
    _look: int

    def start(self) -> bool:
        """Ask for the first time; False when it is known at once that the client has left.

        On this machine it is: the reset is there before our write returns.
        """
        self._ask()
        if not is_half_open(self._handle):
            return False
        self._wait()
        return True

    @override
    def _ask(self) -> None:
        self._look = 0
        super()._ask()

    def _wait(self) -> None:
        pause = LOOKS[self._look] if self._look < len(LOOKS) else 1.0
        self._look += 1
        self._due = self._clock.callLater(pause, self._look_again)

    def _look_again(self) -> None:
        self._due = None
        if self._clock.seconds() >= self._next_probe:
            self._ask()
        if is_half_open(self._handle):
            self._wait()
        else:
            self._gone()


class Lookout(_Watch):
    """Sees whether a client that waits and is not read from is still there: its end would not be heard.

    Args:
        handle: as for `_Watch`, and so are the others.
        unheard: whether that is so at the moment; once it is not, nobody looks until the next `start`.
    """

    __slots__ = ("_unheard",)

    def __init__(
        self,
        handle: socket.socket,
        clock: IReactorTime,
        write: Callable[[bytes], object],
        unheard: Callable[[], bool],
        gone: Callable[[], None],
    ) -> None:
        super().__init__(handle, clock, write, gone)
        self._unheard = unheard

    def start(self) -> None:
        """Look from now on, once a second."""
        if self._due is None:
            self._due = self._clock.callLater(LOOK_EVERY, self._look)

    def _look(self) -> None:
        self._due = None
        if not self._unheard():
            return
        if is_half_open(self._handle) and self._clock.seconds() >= self._next_probe:
            self._ask()  # if it has left, there is a reset by the next look
        if was_reset(self._handle):
            self._gone()
        else:
            self.start()


def is_half_open(handle: socket.socket) -> bool:
    """Return whether the other side of a connection that it has ended can still be sent to.

    Where the system does not tell, it counts as gone.
    """
    return _state_of(handle) == _CLOSE_WAIT


def was_reset(handle: socket.socket) -> bool:
    """Return whether the other side has reset the connection; not where the system does not tell."""
    return _state_of(handle) == _CLOSED


def _state_of(handle: socket.socket) -> int:
    """Return the state of a TCP connection; 0 where the system does not tell."""
    try:
        return handle.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    except (OSError, AttributeError):
        return 0
