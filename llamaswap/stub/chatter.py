"""A server's log, as many lines a second as somebody wants to see a reader choke on.

Knows nothing of what is served.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

SLICE = 0.01
"""Seconds between two bursts: finer would be a busy loop."""

WORDS = "slot update_slots: id  0 | task %d | prompt done, n_tokens = 512, progress = 1.000"


def burst(begin: int, end: int) -> bytes:
    """The lines with these numbers."""
    return "".join(f"{WORDS % number}\n" for number in range(begin, end)).encode()


def chatter(rate: float) -> None:
    """Write so many lines a second to stdout and to stderr, in threads of their own.

    A thread that its reader keeps waiting catches up later: no line is left out.
    """
    for descriptor in (1, 2):
        threading.Thread(target=_talk, args=(descriptor, rate, time.sleep), daemon=True).start()


def _talk(descriptor: int, rate: float, rest: Callable[[float], None]) -> None:
    began, written = time.monotonic(), 0
    while True:
        due = int((time.monotonic() - began) * rate)
        if due > written:
            _write(descriptor, burst(written, due))
            written = due
        rest(SLICE)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
