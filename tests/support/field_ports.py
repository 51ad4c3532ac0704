"""Ports for the models of a case: no two that are played at once are given the same ones.

A model's port is free until the model is loaded, so whether somebody listens
on it says too little.  Each worker of pytest-xdist has a share of its own, and
goes round in it.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Callable, Mapping

FIRST, END = 12_000, 30_000
"""Of all shares together: below the ports that the kernel gives away."""


def is_free(port: int) -> bool:
    """Whether nobody listens on a port of 127.0.0.1."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


class Ports:
    """One worker's share.

    Args:
        worker: its number, from 0.
        workers: how many there are.
        free: whether a port is.
    """

    def __init__(self, worker: int, workers: int, free: Callable[[int], bool] = is_free) -> None:
        width = (END - FIRST) // workers
        self._share = range(FIRST + worker * width, FIRST + (worker + 1) * width)
        self._free = free
        # Whatever else uses such ports on this machine begins somewhere else.
        self._next = random.SystemRandom().choice(self._share)

    def take(self, count: int) -> int:
        """The first of so many free ones in a row, which are not given again for a long time."""
        for _ in range(len(self._share)):
            if self._next + count > self._share.stop:
                self._next = self._share.start
            first, self._next = self._next, self._next + count
            if all(self._free(port) for port in range(first, first + count)):
                return first
        raise AssertionError("no free ports")


def share_of(environ: Mapping[str, str]) -> Ports:
    """The share of the worker that runs in this environment; all there is without workers."""
    worker = environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    # A worker that replaces one that crashed has a number above their count.
    workers = int(environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return Ports(int(worker) % workers, workers)


PORTS = share_of(os.environ)


def free_ports(count: int) -> int:
    """The first of so many free ports in a row, out of this process's share."""
    return PORTS.take(count)
