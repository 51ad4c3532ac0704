"""Signal the processes that a child brought along, and see whether any is left.

Each child leads a session and a group of its own.  Knows the kernel's view of
them; not which child is whose, nor when one should end.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import NamedTuple, Protocol

PROC = "/proc"
_GONE = ("Z", "X")


class Groups(Protocol):
    """What can be done with the group that a child leads."""

    def signal(self, pid: int, signum: int) -> None:
        """Signal every member of the group that `pid` leads; nobody there is fine."""
        ...

    def orphans(self, pid: int) -> bool:
        """Whether anybody outlived the leader `pid`, which has been reaped; zombies do not count."""
        ...

    def kill_orphans(self, pid: int) -> None:
        """Kill whoever outlived the leader `pid`, which has been reaped."""
        ...

    def find_strays(self, pid: int) -> frozenset[int]:
        """Find descendants of the leader `pid`, which lives, that have left its group and session.

        From now on they count among whoever outlives it.

        Returns:
            Those that were not known before.
        """
        ...

    def signal_strays(self, pid: int, signum: int) -> None:
        """Signal those that were found."""
        ...

    def forget(self, pid: int) -> frozenset[int]:
        """Nothing of what `pid` led is left, or is to be waited for; returns its strays."""
        ...


class Stat(NamedTuple):
    """What `/proc/<pid>/stat` tells about one process."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    born: int  # clock ticks since boot


class SystemGroups:
    """The process groups of this machine."""

    def __init__(self) -> None:
        self._strays: dict[int, dict[int, int]] = {}  # leader to strays, each with when it was born

    def signal(self, pid: int, signum: int) -> None:
        try:
            os.killpg(pid, signum)
        except ProcessLookupError:
            # A child that has only just been started leads no group yet.
            _signal_alone(pid, signum)
        except PermissionError:
            _signal_alone(pid, signum)

    def orphans(self, pid: int) -> bool:
        # Where the daemon is the first process of its container, orphans become
        # its children, and nobody else will ever reap them.
        _reap_group(pid)
        try:
            return any(True for _ in _orphans(pid)) or any(True for _ in self._living_strays(pid))
        except OSError:  # no descriptor is left to look with: we shall be asked again
            return True

    def kill_orphans(self, pid: int) -> None:
        with contextlib.suppress(OSError):  # as above
            for orphan in _orphans(pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(orphan, signal.SIGKILL)
        self.signal_strays(pid, signal.SIGKILL)

    def find_strays(self, pid: int) -> frozenset[int]:
        known = self._strays.get(pid, {})
        try:
            found = {
                stat.pid: stat.born for stat in _descendants(pid) if pid not in (stat.group, stat.session)
            }
        except OSError:  # no descriptor is left to look with, or no /proc
            found = {}
        new = frozenset(stray for stray, born in found.items() if known.get(stray) != born)
        if new:
            self._strays[pid] = {**known, **found}
        return new

    def signal_strays(self, pid: int, signum: int) -> None:
        for stray in self._living_strays(pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(stray, signum)

    def forget(self, pid: int) -> frozenset[int]:
        return frozenset(self._strays.pop(pid, ()))

    def _living_strays(self, pid: int) -> Iterator[int]:
        for stray, born in self._strays.get(pid, {}).items():
            stat = read_stat(stray)
            if stat is not None and stat.born == born and stat.state not in _GONE:
                yield stray


def read_stat(pid: int) -> Stat | None:
    """Look at one process; None when there is none (or no `/proc`)."""
    try:
        with open(f"{PROC}/{pid}/stat", "rb") as file:  # noqa: PTH123 - hundreds in a row, pathlib doubles the cost
            text = file.read()
    except OSError:
        return None
    # The name before these fields may itself hold spaces and parentheses.
    state, parent, group, session, *rest = text.rpartition(b")")[2].split()
    return Stat(pid, state.decode(), int(parent), int(group), int(session), int(rest[15]))


def _orphans(pid: int) -> Iterator[int]:
    """The living members of the group, and of the session, that a reaped leader left.

    The kernel gives a number out again only when neither a group nor a session
    carries it, so a process of that number means that the old ones are gone.
    A negative number is a whole group, where nothing better can be known.
    """
    if not os.path.isdir(f"{PROC}/self"):  # noqa: PTH112 - as above
        if _answers(pid):
            yield -pid
        return
    if os.path.isdir(f"{PROC}/{pid}"):  # noqa: PTH112 - as above
        return
    for stat in _everybody():
        if pid in (stat.group, stat.session) and stat.state not in _GONE:
            yield stat.pid


def _descendants(pid: int) -> Iterator[Stat]:
    """The children of a process, theirs, and so on."""
    children: dict[int, list[Stat]] = {}
    for stat in _everybody():
        children.setdefault(stat.parent, []).append(stat)
    parents = [pid]
    while parents:
        for stat in children.pop(parents.pop(), ()):
            parents.append(stat.pid)
            yield stat


def _everybody() -> Iterator[Stat]:
    for name in os.listdir(PROC):  # noqa: PTH208 - as above
        stat = read_stat(int(name)) if name.isdigit() else None
        if stat is not None:
            yield stat


def _answers(pgid: int) -> bool:
    try:
        os.killpg(pgid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _signal_alone(pid: int, signum: int) -> None:
    stat = read_stat(pid)
    if stat is None or stat.parent == os.getpid():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signum)


def _reap_group(pgid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-pgid, os.WNOHANG)[0] != 0:
            pass
