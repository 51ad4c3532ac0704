"""Processes that end with us, on the processors that they belong on; free ports; waiting for a server.

The proxy that is measured has the first processor for itself; who asks and
who answers share what is left, so that they take nothing from it.
"""

from __future__ import annotations

import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

PATIENCE = 30.0  # seconds that a server may take to answer
GRACE = 20.0  # seconds that a process may take to end

_PR_SET_PDEATHSIG = 1


class Failed(Exception):
    """Something was not as it should be: there is nothing to measure."""


def proxy_processors() -> set[int]:
    """Return where the proxy under test runs."""
    return set(sorted(os.sched_getaffinity(os.getpid()))[:1])


def other_processors() -> set[int]:
    """Return where everything else runs; on a machine with one processor, there too."""
    return set(sorted(os.sched_getaffinity(os.getpid()))[1:]) or proxy_processors()


def launch(
    words: Sequence[str | Path],
    processors: set[int],
    *,
    log: Path | None = None,
    stdout: int | None = None,
    folder: Path | None = None,
) -> subprocess.Popen[str]:
    """Start a process that gets SIGTERM should this one die.

    Args:
        log: where its output goes, appended; None = stderr to ours and stdout to `stdout`.
        folder: its working directory.
    """
    prepare = partial(_prepare, os.getpid(), processors)
    if log is None:
        return subprocess.Popen(words, stdout=stdout, text=True, preexec_fn=prepare, cwd=folder)
    with log.open("a") as output:
        return subprocess.Popen(
            words, stdout=output, stderr=output, text=True, preexec_fn=prepare, cwd=folder
        )


def _prepare(parent: int, processors: set[int]) -> None:
    """Runs in the new process, before its program."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)
    os.sched_setaffinity(0, processors)


def end(process: subprocess.Popen[str]) -> None:
    """Stop a process that we started, the hard way when it takes too long."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout:
        process.stdout.close()


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def free_ports(count: int) -> int:
    """Return the first of so many free ports in a row, below those that the kernel gives away."""
    for _ in range(100):
        first = random.randrange(12_000, 30_000)
        if all(_is_free(port) for port in range(first, first + count)):
            return first
    raise Failed("no free ports")


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def wait_for_port(port: int, process: subprocess.Popen[str] | None = None, log: Path | None = None) -> None:
    """Wait until somebody listens on a port of 127.0.0.1.

    Raises:
        Failed: the process has ended, or nobody does in good time.
    """
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return
        if process and process.poll() is not None:
            break
        time.sleep(0.01)
    said = log.read_text(errors="replace")[-2000:] if log and log.exists() else ""
    raise Failed(f"nobody listens on port {port}\n{said}")


def progress(text: str) -> None:
    """Tell a person what goes on."""
    print(text, file=sys.stderr, flush=True)
