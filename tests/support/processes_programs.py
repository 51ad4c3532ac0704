"""Small real programs for children, and ways to see what became of them."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

STUB = """
import os, signal, socket, sys, time

port, load, facts = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
host, family = ("::1", socket.AF_INET6) if "six" in sys.argv else ("127.0.0.1", socket.AF_INET)
listening = socket.create_server((host, port), family=family)
started = time.monotonic()
with open(facts, "a") as file:
    file.write("%d %f\\n" % (os.getpid(), started + load))
print("listening", flush=True)
while True:
    connection, _ = listening.accept()
    connection.recv(65536)
    status = b"200 OK" if time.monotonic() - started >= load else b"503 Loading"
    connection.sendall(b"HTTP/1.1 " + status + b"\\r\\nContent-Length: 2\\r\\n\\r\\n{}")
    connection.close()
"""
"""A server.

Its words: PORT, seconds until it answers 200, a file for its pid and that
moment; then `deaf` to ignore SIGTERM, `six` to listen on ::1.
"""


def stub(folder: Path, port: int, load: float = 0.0, *words: str) -> tuple[str, ...]:
    """The command of a stub server that notes what it does in `folder`."""
    program = folder / "stub.py"
    program.write_text(STUB)
    return (sys.executable, "-I", "-S", str(program), str(port), str(load), str(folder / "facts"), *words)


def stub_facts(folder: Path) -> list[tuple[int, float]]:
    """The pid, and the moment of the first 200 on the monotonic clock, of each stub so far."""
    facts = folder / "facts"
    rows = [line.split() for line in facts.read_text().splitlines()] if facts.exists() else []
    return [(int(pid), float(moment)) for pid, moment in rows]


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def has_ipv6() -> bool:
    """Whether this machine has an IPv6 loopback."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}


def zombies_of(parent: int) -> list[int]:
    """The children of a process that have ended and were not reaped."""
    return [pid for pid, state, ppid in _processes() if state == "Z" and ppid == parent]


def _processes() -> Iterator[tuple[int, str, int]]:
    """The pid, the state and the parent of every process."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                state, parent, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
                yield int(entry.name), state, int(parent)


async def until(clock: IReactorTime, holds: Callable[[], bool], what: str, deadline: float = 15.0) -> None:
    """Wait until something holds; a failure of the test if it does not within `deadline` seconds."""
    end = clock.seconds() + deadline
    while not holds():
        assert clock.seconds() < end, f"in vain waited {deadline} s for: {what}"
        await deferLater(clock, 0.01)
