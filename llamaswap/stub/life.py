"""How a stub starts, lingers and dies: shells around it, a lock, signals, an hour of death.

Knows nothing of what it serves.
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import NoReturn

from llamaswap.stub.options import Life
from llamaswap.stub.records import Record

NOT_EXECED = '"$@"; exit $?'
"""A shell that waits for what it runs, as scripts do whose author forgot `exec`."""


def wrapped(words: Sequence[str]) -> list[str]:
    """A command that runs these words below a shell, with one `--fork` less."""
    inner = list(words)
    inner.remove("--fork")
    return ["sh", "-c", NOT_EXECED, "sh", *inner]


def go_below_a_shell() -> NoReturn:
    """Become a shell that runs this very program again."""
    words = wrapped(sys.orig_argv)
    words[4] = sys.executable
    os.execvp(words[0], words)  # noqa: S606 - it is a shell


class Mortality:
    """One process's ends.

    Args:
        life: how it should end.
        record: is told of signals.
        began: the start, on the monotonic clock.
    """

    def __init__(self, life: Life, record: Record, began: float) -> None:
        self._life = life
        self._record = record
        self._began = began
        self.leaving = False

    def begin(self) -> None:
        """Take the lock, heed signals, set the hour of death.  Only in the main thread."""
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGTERM, self._asked)
        signal.signal(signal.SIGINT, self._asked)
        # Python runs handlers in the main thread, which alone may change what a signal does.
        signal.signal(signal.SIGALRM, self._die)
        if self._life.die_at is not None:
            left = self._began + self._life.die_at - time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-6))
        if self._life.vram is not None:
            self._take(*self._life.vram)

    def die(self) -> NoReturn:
        """End at once, in the way asked for on the command line; from any thread."""
        os.kill(os.getpid(), signal.SIGALRM)
        while True:
            time.sleep(1.0)

    def _die(self, _: int, __: FrameType | None) -> None:
        sys.stderr.write("stub: fatal error, as asked for\n")
        sys.stderr.flush()
        self._record.note("died")
        if self._life.sig is not None:
            if self._life.sig != signal.SIGKILL:
                signal.signal(self._life.sig, signal.SIG_DFL)
            os.kill(os.getpid(), self._life.sig)
        os._exit(self._life.code)

    def _asked(self, signum: int, _: FrameType | None) -> None:
        """A signal asks it to leave."""
        again, self.leaving = self.leaving, True
        self._record.note("term", signal=signum, ignored=self._life.ignore_term)
        if not self._life.ignore_term and not again:
            _later(self._life.term_lag, self._leave)

    def _leave(self) -> None:
        self._record.note("left")
        os._exit(0)

    def _take(self, path: str, size: str) -> None:
        """Hold an exclusive lock for as long as the process lives: the kernel gives it back."""
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(file, 80).decode()
            self._record.note("contended", holder=holder)
            sys.stderr.write(f"stub: out of memory: {size} asked for, held by {holder}\n")
            sys.stderr.flush()
            os._exit(1)
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()} {size}".encode(), 0)


def _later(seconds: float, call: Callable[[], None]) -> None:
    if seconds <= 0:
        call()
        return
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()
