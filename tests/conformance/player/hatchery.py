"""Servers out of one interpreter that has imported llama-swap already.

Importing it takes longer than most cases, and a run starts some two hundred servers.  Run as a program, this
reads orders, one JSON object a line, and answers each with the id of a process that goes on as
`llama-swap` with the words of the order; apart from its imports, that process is like any other.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from conformance.player.corpus import FOLDER

BETWEEN_LOOKS = 0.01


class Hatched:
    """A process out of the hatchery, as much like `Popen` as is needed."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        """None while it runs; what it ended with is not known."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end.

        Raises:
            subprocess.TimeoutExpired: it did not end in so many seconds.
        """
        end = time.monotonic() + (timeout or 0.0)
        while self.poll() is None:
            if timeout is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(BETWEEN_LOOKS)
        return 0


class Hatchery:
    """The interpreter, for as long as its `with` block lasts; may be asked from any thread."""

    def __enter__(self) -> Self:
        self._lock = threading.Lock()
        self._interpreter = subprocess.Popen(
            [sys.executable, "-m", "conformance.player.hatchery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=FOLDER.parent,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._interpreter.communicate()

    def start(self, words: Sequence[str], folder: Path, log: Path) -> Hatched:
        """Start a server.

        Args:
            words: its command line; the program's name does not matter.
            folder: its working directory.
            log: where its output is added.
        """
        stdin, stdout = self._interpreter.stdin, self._interpreter.stdout
        assert stdin is not None
        assert stdout is not None
        order = {"words": list(words[1:]), "folder": str(folder), "log": str(log)}
        with self._lock:
            stdin.write(json.dumps(order) + "\n")
            stdin.flush()
            return Hatched(int(stdout.readline()))


def main() -> None:
    """Take orders until there are no more."""
    from llamaswap.cli import main as run

    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody is left as a zombie
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            _go_on(json.loads(line), run)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


def _go_on(order: dict[str, str], run: Callable[[Sequence[str]], None]) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for ours, theirs in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(ours, theirs)
    os.chdir(order["folder"])
    run(order["words"])
    sys.exit(0)


if __name__ == "__main__":
    main()
