"""A reactor that starts no process, and a kernel without any: they only take notes."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from typing import Any

from twisted.internet.error import ProcessDone, ProcessExitedAlready, ProcessTerminated
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.task import Clock
from twisted.python.failure import Failure


@dataclass(eq=False)
class Spawned:
    """One process that was asked for, as its protocol's transport."""

    pid: int
    protocol: ProcessProtocol
    words: list[str]
    env: dict[str, str] | None
    descriptors: dict[int, int]
    signals: list[str] = field(default_factory=list)
    ended: bool = False

    def signalProcess(self, name: str) -> None:
        """What Twisted's transport does, noted."""
        if self.ended:
            raise ProcessExitedAlready
        self.signals.append(name)

    def ends(self, code: int = 0) -> None:
        """The process exits, and Twisted has noticed."""
        self.ended = True
        reason = ProcessDone(0) if code == 0 else ProcessTerminated(code, None, code << 8)
        self.protocol.processExited(Failure(reason))


class SpawnReactor(Clock):
    """A clock that takes orders for processes."""

    def __init__(self) -> None:
        super().__init__()
        self.spawned: list[Spawned] = []
        self.readers: set[Any] = set()
        self.refusal: OSError | None = None

    def spawnProcess(
        self,
        protocol: ProcessProtocol,
        executable: str,
        args: list[str],
        env: dict[str, str] | None = None,
        childFDs: dict[int, int] | None = None,  # noqa: N803 - Twisted names it
    ) -> Spawned:
        """Take an order; descriptors are copied, as a real process would have its own."""
        if self.refusal is not None:
            raise self.refusal
        kept = {number: os.dup(descriptor) for number, descriptor in (childFDs or {}).items()}
        process = Spawned(101 + len(self.spawned), protocol, args, env, kept)
        self.spawned.append(process)
        protocol.makeConnection(process)
        return process

    def addReader(self, reader: Any) -> None:
        """Noted."""
        self.readers.add(reader)

    def removeReader(self, reader: Any) -> None:
        """Noted."""
        self.readers.discard(reader)

    def close(self) -> None:
        """Close the descriptors of all processes."""
        for process in self.spawned:
            for descriptor in process.descriptors.values():
                os.close(descriptor)


@dataclass
class FakeGroups:
    """Groups as the test describes them; `Groups`."""

    left: set[int] = field(default_factory=set)  # leaders whose group has members after they were reaped
    stubborn: bool = False  # not even SIGKILL helps
    signals: list[tuple[int, str]] = field(default_factory=list)
    killed: list[int] = field(default_factory=list)  # leaders whose orphans were killed
    strays: set[int] = field(default_factory=set)  # descendants that have left
    found: set[int] = field(default_factory=set)  # those of them that somebody has asked for
    told: list[tuple[int, str]] = field(
        default_factory=list
    )  # signals for the strays of a leader, if it had any

    def signal(self, pid: int, signum: int) -> None:
        """Noted."""
        self.signals.append((pid, signal.Signals(signum).name))

    def orphans(self, pid: int) -> bool:
        """As described."""
        return pid in self.left

    def kill_orphans(self, pid: int) -> None:
        """They go, unless they are stubborn."""
        self.killed.append(pid)
        if not self.stubborn:
            self.left.discard(pid)

    def find_strays(self, pid: int) -> frozenset[int]:
        """As described, once."""
        new = frozenset(self.strays - self.found)
        self.found |= new
        return new

    def signal_strays(self, pid: int, signum: int) -> None:
        """Noted."""
        if self.found:
            self.told.append((pid, signal.Signals(signum).name))

    def forget(self, pid: int) -> frozenset[int]:
        """Those that were found."""
        return frozenset(self.found)
