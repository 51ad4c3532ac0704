"""Which processes belong to a test, and what they hold.

A daemon under test gets a mark in its environment, and everything that it
starts inherits it: so orphans are found wherever they went.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

MARK = "LLAMASWAP_TEST_MARK"


def marked(mark: str) -> list[int]:
    """The processes with this mark, zombies not counted."""
    wanted = f"{MARK}={mark}".encode()
    return [pid for pid in _pids() if wanted in _read(pid, "environ").split(b"\0")]


def words_of(pid: int) -> list[str]:
    """The command line of a process; empty if it is gone."""
    return _read(pid, "cmdline").decode("utf-8", "replace").split("\0")[:-1]


def served_models(mark: str) -> set[str]:
    """The models that the process list says are there: what follows `--alias` on command lines."""
    found = set()
    for pid in marked(mark):
        words = words_of(pid)
        found |= {after for word, after in pairwise(words) if word == "--alias"}
    return found


def descriptors(pid: int) -> list[str]:
    """What a process has open, one word each: where /proc/<pid>/fd points to, sorted."""
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(entry))  # noqa: PTH115 - targets such as socket:[1] are no paths
        except FileNotFoundError:
            continue
    return sorted(found)


def connections(port: int) -> int:
    """How many established TCP connections this host has that end at a local port, either side."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    ends = [(line.split()[1], line.split()[3]) for line in lines]
    return sum(local.endswith(f":{port:04X}") and state == "01" for local, state in ends)


def probe_timers(pid: int) -> list[float]:
    """Seconds until each silent IPv4 connection of a process is asked for a sign of life."""
    own = {name.removeprefix("socket:[").removesuffix("]") for name in descriptors(pid)}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    timers = [row[5].split(":") for row in rows if row[3] == "01" and row[9] in own]
    return [int(ticks, 16) / os.sysconf("SC_CLK_TCK") for kind, ticks in timers if kind == "02"]


def own_memory(pid: int) -> int:
    """Bytes of memory that are a process's own, swapped out or not."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    sizes = {line.split(":")[0]: line.split()[1] for line in status if line.endswith(" kB")}
    return 1024 * (int(sizes["RssAnon"]) + int(sizes["VmSwap"]))


def _pids() -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            yield int(entry.name)


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
