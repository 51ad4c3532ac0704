"""Tell the service manager how we are: systemd's notification protocol, where there is one."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from twisted.logger import Logger


class Supervisor:
    """Sends state changes to the socket that `NOTIFY_SOCKET` names; without one, nowhere.

    Args:
        environ: where the name of the socket is looked up.
    """

    _log = Logger()

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._path = environ.get("NOTIFY_SOCKET", "")

    def ready(self, status: str) -> None:
        """We answer requests from now on."""
        self._send(f"READY=1\nSTATUS={status}")

    def reloading(self, now: float) -> None:
        """Another configuration takes over; `ready` says when it has.

        Args:
            now: seconds on the monotonic clock, which systemd compares with its own.
        """
        self._send(f"RELOADING=1\nMONOTONIC_USEC={int(now * 1_000_000)}")

    def stopping(self) -> None:
        """We take no more requests."""
        self._send("STOPPING=1\nSTATUS=waiting for the running job")

    def _send(self, state: str) -> None:
        if not self._path:
            return
        address = "\0" + self._path[1:] if self._path.startswith("@") else self._path
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as notify:
                notify.connect(address)
                notify.send(state.encode())
        except OSError as error:
            # Nobody hears us; that is no reason to serve nobody, let alone to stop half-way through a stop.
            self._log.warn("supervision.not_told why={why}", why=str(error))
