"""Ports that nobody uses, in blocks."""

from __future__ import annotations

import random
import socket
import threading

SIZE = 16
"""Ports in one block."""

_LOWEST, _HIGHEST = 20_000, 32_000  # the kernel hands out ephemeral ports above


class Ports:
    """Hands out blocks of ports; may be asked from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Another run on this machine begins elsewhere.
        self._next = random.randrange(_LOWEST, _HIGHEST - SIZE, SIZE)

    def block(self) -> int:
        """The first of `SIZE` ports that are free now."""
        with self._lock:
            while True:
                first = self._next
                self._next = first + SIZE if first + 2 * SIZE < _HIGHEST else _LOWEST
                if all(map(_is_free, range(first, first + SIZE))):
                    return first


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
