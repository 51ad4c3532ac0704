"""Kill what a daemon leaves behind when it dies; a program of its own.

It reads `+PID` and `-PID` lines from its standard input.  When that closes,
the daemon is gone: the sessions that these processes lead, and that have not
been taken back, are killed.  Run as a plain file with `python -I -S`, so it
knows nothing of this package and imports as little as it can.
"""

from __future__ import annotations

import os
import signal

PROC = "/proc"


class Entry:
    """What `/proc/<pid>/stat` tells about one process."""

    __slots__ = ("born", "group", "pid", "session")

    def __init__(self, pid: int, fields: list[bytes]) -> None:
        self.pid = pid
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.born = int(fields[19])  # clock ticks since boot


def look(pid: int) -> Entry | None:
    """Look at one process; None when there is none."""
    try:
        descriptor = os.open(f"{PROC}/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        return Entry(pid, os.read(descriptor, 4096).rpartition(b")")[2].split())
    except (OSError, IndexError):  # it went while we looked
        return None
    finally:
        os.close(descriptor)


def note(watched: dict[int, int | None], line: bytes) -> None:
    """Take one `+PID` or `-PID` line; anything else is left alone."""
    sign, number = line[:1], line[1:]
    if not number.isdigit() or int(number) <= 1:
        return
    pid = int(number)
    if sign == b"+":
        entry = look(pid)
        watched[pid] = None if entry is None else entry.born
    elif sign == b"-":
        watched.pop(pid, None)


def doomed(pid: int, born: int | None) -> list[int]:
    """Whom to kill of what `pid` led; a negative number is a whole group.

    A number is given out again only when no group and no session carries it:
    a leader that was born at another time has nothing to do with ours.
    """
    if not os.path.exists(f"{PROC}/self"):  # noqa: PTH110 - pathlib would double the time to start
        return [-pid]
    leader = look(pid)
    if leader is not None and leader.born != born:
        return []
    entries = [look(int(name)) for name in os.listdir(PROC) if name.isdigit()]  # noqa: PTH208 - as above
    members = [entry.pid for entry in entries if entry is not None and entry.session == pid]
    # A leader that had no time to make its session is still ours.
    return sorted({*members, pid} if leader is not None else members)


def end(watched: dict[int, int | None]) -> None:
    """Kill all that is left, again until nothing new turns up."""
    for _ in range(5):
        targets = [target for pid, born in watched.items() for target in doomed(pid, born)]
        if not targets:
            return
        for target in targets:
            try:
                os.kill(target, signal.SIGKILL)
            except OSError:
                continue


def main() -> None:
    """Watch until the daemon is gone."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(signum, signal.SIG_IGN)
    if os.getsid(0) != os.getpid():
        os.setsid()
    os.chdir("/")
    watched: dict[int, int | None] = {}
    rest = b""
    while data := os.read(0, 4096):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            note(watched, line)
    end(watched)


if __name__ == "__main__":
    main()
