"""What the kernel has written down about processes: time on a processor, memory, wake-ups, ports.

Reads /proc and the processes' own clocks; starts and stops nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")

LISTENING = "0A"  # as /proc/net/tcp writes a socket's state

_PROCESS_CLOCK = 2  # "time that the scheduler gave it", of a whole process: see clock_getcpuclockid(3)


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the processor time that these processes have used since they began, to the nanosecond.

    All threads of each count, those that have ended included, and no
    children.

    Raises:
        OSError: one of them is gone.
    """
    return sum(time.clock_gettime((~pid << 3) | _PROCESS_CLOCK) for pid in pids)


def thread_cpu_seconds(pid: int) -> dict[int, float]:
    """Return the processor time of each thread that a process has now, not of those that ended."""
    return {tid: int(text.split()[0]) / 1e9 for tid, text in _of_threads(pid, "schedstat")}


def voluntary_switches(pid: int) -> dict[int, int]:
    """Return how often each thread of a process has gone to sleep: about as often as it was woken."""
    return {tid: int(_fields(text)["voluntary_ctxt_switches"]) for tid, text in _of_threads(pid, "status")}


def rss_kib(pid: int) -> int:
    """Return the memory that a process has in RAM, in KiB, pages shared with others included."""
    return int(_fields((PROC / str(pid) / "status").read_text())["VmRSS"].split()[0])


def command_line(pid: int) -> list[str]:
    """Return a process's words, [] when it is gone."""
    with suppress(OSError):
        return (PROC / str(pid) / "cmdline").read_text().split("\0")[:-1]
    return []


def children(pid: int) -> list[int]:
    """Return the processes that this one has started and that are still there."""
    return sorted(one for one, parent in _parents() if parent == pid)


def listeners(port: int) -> list[int]:
    """Return the processes that listen on a TCP port of this host, over IPv4 or IPv6."""
    wanted = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    return [pid for pid in _pids() if not wanted.isdisjoint(_descriptors(pid))]


def _of_threads(pid: int, name: str) -> Iterator[tuple[int, str]]:
    """Yield each thread's number and what its file of this name says."""
    for task in sorted((PROC / str(pid) / "task").iterdir()):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread may end while we look
            yield int(task.name), (task / name).read_text()


def _fields(status: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in status.splitlines())
    return {name: value.strip() for name, _, value in pairs}


def _pids() -> list[int]:
    return [int(path.name) for path in PROC.iterdir() if path.name.isdigit()]


def _parents() -> Iterator[tuple[int, int]]:
    for pid in _pids():
        with suppress(OSError):
            # The name in brackets may hold anything, a bracket too.
            after_name = (PROC / str(pid) / "stat").read_text().rpartition(")")[2]
            yield pid, int(after_name.split()[1])


def _listening_inodes(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        with suppress(FileNotFoundError):  # a host without IPv6
            for line in (PROC / "net" / table).read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == LISTENING and int(words[1].rpartition(":")[2], 16) == port:
                    yield words[9]


def _descriptors(pid: int) -> Iterator[str]:
    with suppress(OSError):  # gone, or another user's
        for link in (PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                yield str(link.readlink())
