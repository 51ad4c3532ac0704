"""Whether somebody listens on a local port already."""

from __future__ import annotations

import errno
import socket

_LOOPBACKS = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))

_USED_UP = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def is_taken(port: int) -> bool:
    """Return whether a server listens on this port of either loopback, or of every interface.

    Of either: `localhost` means both, and whoever is on one of them would answer in our child's place.

    Raises:
        OSError: nothing is left to ask with, such as a descriptor.
    """
    return any(_is_taken(family, host, port) for family, host in _LOOPBACKS)


def _is_taken(family: socket.AddressFamily, host: str, port: int) -> bool:
    """Look at one of them; one that this machine does not have is not taken.

    With SO_REUSEADDR the kernel minds listeners only, not connections that are still dying away.

    Raises:
        OSError: nothing is left to ask with.
    """
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            probe.listen(1)
    except OSError as error:
        if error.errno in _USED_UP:
            raise
        return error.errno == errno.EADDRINUSE
    return False
