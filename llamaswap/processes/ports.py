"""Whether somebody listens on a local port already."""

from __future__ import annotations

import errno
import socket


def is_taken(port: int) -> bool:
    """Return whether a server listens on this port of the IPv4 loopback, or of every interface.

    With SO_REUSEADDR the kernel minds listeners only, not connections that are still dying away.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False
