"""Tell the service manager how we are: systemd's notification protocol, where there is one.

Knows the words of the protocol, and when the manager takes silence for a fault.
What there is to tell, and when, is the service's affair.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

MICROSECONDS = 1_000_000

MANAGER_PATIENCE = 2.0  # seconds that we wait for a manager that is too busy to take what we say


def patience_of(environ: Mapping[str, str], pid: int) -> float | None:
    """Return after how many seconds of silence the manager restarts the process `pid`; None: it doesn't."""
    wanted, meant = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", str(pid))
    if meant != str(pid) or not (wanted.isascii() and wanted.isdigit()) or int(wanted) == 0:
        return None
    return int(wanted) / MICROSECONDS


class Supervisor:
    """Sends state changes to the socket that `NOTIFY_SOCKET` names; without one, nowhere.

    Args:
        environ: where the name of the socket is looked up, and whether we are watched.
        clock: of the reactor; a reactor that is stuck gives no sign of life.
    """

    _log = Logger()

    def __init__(self, environ: Mapping[str, str], clock: IReactorTime) -> None:
        self._path = environ.get("NOTIFY_SOCKET", "")
        self._patience = patience_of(environ, os.getpid()) if self._path else None
        self._clock = clock
        self._next: IDelayedCall | None = None

    def ready(self, status: str) -> None:
        """We answer requests from now on."""
        self._send(f"READY=1\nSTATUS={status}")

    def reloading(self) -> None:
        """Another configuration takes over; `ready` says when it has."""
        # The manager compares the moment with that of its own signal, on the same monotonic clock.
        self._send(f"RELOADING=1\nMONOTONIC_USEC={int(self._clock.seconds() * MICROSECONDS)}")

    def stopping(self, status: str) -> None:
        """We take no more requests."""
        self._send(f"STOPPING=1\nSTATUS={status}")

    def status(self, status: str) -> None:
        """What is going on, in one line for people."""
        self._send(f"STATUS={status}")

    def begin_signs_of_life(self) -> None:
        """Give one now and then one in each half of the manager's patience, where it has any."""
        if self._patience is not None:
            self._send("WATCHDOG=1")
            self._next = self._clock.callLater(self._patience / 2, self.begin_signs_of_life)

    def end_signs_of_life(self) -> None:
        """Give none any more."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _send(self, state: str) -> None:
        if not self._path:
            return
        address = "\0" + self._path[1:] if self._path.startswith("@") else self._path
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as notify:
                notify.settimeout(MANAGER_PATIENCE)
                notify.connect(address)
                notify.send(state.encode())
        except OSError as error:
            # Nobody hears us; that is no reason to serve nobody, let alone to stop half-way through a stop.
            self._log.warn("supervision.not_told why={why}", why=str(error))
