"""Follow one child from its start until nothing of it is left.

Knows the order in which an end arrives: the leader exits, its output closes,
the rest of its group goes or is killed.  Not how a child is started
(`spawning`) nor why it should stop (`stopping`).
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessTerminated
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure
from typing_extensions import override

from llamaswap.processes.groups import Groups

BACKSTOP = 10.0
"""Seconds that whoever outlives the leader may hold up the end."""

REAPING = 2.0
"""Seconds more for the kernel to take a killed group down; video memory takes its time."""

SHORTEST_LOOK = 0.005  # seconds between two looks at what is left
LONGEST_LOOK = 0.2

FIRST_ROUND = 0.5
"""Seconds from the start to the first look for descendants that have left the child's session; each further
look comes after twice as many.  Those of a leader that is gone nobody can tell from strangers."""


@dataclass(frozen=True, slots=True)
class Order:
    """A child to start."""

    argv: tuple[str, ...]
    env: tuple[str, ...] = ()  # NAME=value, later wins
    port: int | None = None  # that it will listen on; None = not ours to know
    detaches: bool = False  # what it starts in a session of its own goes on without it


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child's leader ended."""

    how: str  # "exited with code 1"
    clean: bool  # it exited with code 0


class CannotStart(Exception):
    """No child came to be; the text is one line that names the program."""


class PortTaken(CannotStart):
    """Somebody listens where the child should; whoever that is may be about to go."""


class Child(Protocol):
    """A running child, as its owner sees it."""

    @property
    def pid(self) -> int:
        """The leader's process id, and that of its group and session."""
        ...

    def terminate(self) -> None:
        """Ask the whole group to go (SIGTERM)."""
        ...

    def terminate_rest(self) -> None:
        """Ask whoever outlives the leader to go (SIGTERM), once that has gone."""
        ...

    def kill(self) -> None:
        """End the whole group now (SIGKILL)."""
        ...


class ChildRunner(Protocol):
    """Starts children that do not outlive the daemon."""

    def spawn(self, order: Order, output: Callable[[bytes], None], ended: Callable[[Ending], None]) -> Child:
        """Start a child in a session of its own.

        Args:
            order: what to run.
            output: takes what it writes to stdout and stderr, in order.
            ended: called once, never before this method has returned, when the
                child is reaped, its output is closed and its group is empty.

        Raises:
            CannotStart: there is no such program, or no room for it.
        """
        ...

    def close(self) -> Deferred[None]:
        """End whatever still runs; fires when that has been seen to."""
        ...


class ChildProcess(ProcessProtocol):
    """One child process; a `Child`.

    Its end is announced from the reactor, never from within a call that the
    owner makes.
    """

    pid = 0  # until it has been started

    def __init__(
        self,
        groups: Groups,
        clock: IReactorTime,
        ended: Callable[[Ending], None],
        strayed: Callable[[int], None] | None = None,
    ) -> None:
        """Follow the child that it is given to.

        Args:
            strayed: told of each descendant that has left the child's session, and that ends with it; None =
                these are let go.
        """
        self._groups = groups
        self._clock = clock
        self._strayed = strayed
        self._round: IDelayedCall | None = None
        self._ended: Callable[[Ending], None] | None = ended
        self._ending: Ending | None = None
        self._exited_at = 0.0
        self._output_open = True
        self._asked = False
        self._asks_rest = False
        self._looking: IDelayedCall | None = None
        self._pause = SHORTEST_LOOK

    @override
    def connectionMade(self) -> None:
        assert self.transport is not None
        self.pid = self.transport.pid
        if self._strayed is not None:
            self._plan_round(FIRST_ROUND)

    def terminate(self) -> None:
        """See `Child`."""
        self._asked = True
        self._signal(signal.SIGTERM)

    def terminate_rest(self) -> None:
        """See `Child`."""
        self._asks_rest = True
        if self._ending is not None:
            self.terminate()

    def kill(self) -> None:
        """See `Child`."""
        self._asked = True
        self._signal(signal.SIGKILL)

    @override
    def processExited(self, reason: Failure) -> None:
        self._ending = describe(reason)
        self._exited_at = self._clock.seconds()
        if self._round is not None:
            self._round.cancel()
            self._round = None
        if self._asks_rest:
            self.terminate()
        else:
            self._groups.signal_strays(self.pid, signal.SIGTERM)  # nobody has told them
        # This may still be within spawnProcess; the output has news of its own.
        self._look_in(0.0)

    def output_closed(self) -> None:
        """Nobody can write to the child's output any more."""
        self._output_open = False
        if self._ending is not None and self._ended is not None:
            self._look_in(0.0)

    def _signal(self, signum: int) -> None:
        # The number of a reaped leader may be somebody else's by now.
        if self._ending is None:
            self._find_strays()  # while they can be told from strangers
            self._groups.signal(self.pid, signum)
            if signum == signal.SIGKILL:
                self._groups.signal_strays(self.pid, signum)
        elif self._ended is not None and self._groups.orphans(self.pid):
            self._groups.signal(self.pid, signum)
            self._groups.signal_strays(self.pid, signum)
            self._look_in(0.0)

    def _plan_round(self, seconds: float) -> None:
        self._round = self._clock.callLater(seconds, self._make_round, seconds)

    def _make_round(self, seconds: float) -> None:
        self._plan_round(2 * seconds)
        self._find_strays()

    def _find_strays(self) -> None:
        if self._strayed is not None:
            for pid in self._groups.find_strays(self.pid):
                self._strayed(pid)

    def _look(self) -> None:
        """See what is left of the group, and how long that may go on."""
        self._looking = None
        waited = self._clock.seconds() - self._exited_at
        orphans = self._groups.orphans(self.pid)
        if waited >= BACKSTOP + REAPING or not (orphans or (self._output_open and waited < BACKSTOP)):
            self._finish()
            return
        # Those who were asked to go, or still have something to say, get some time for it.
        if orphans and (waited >= BACKSTOP or not (self._output_open or self._asked)):
            self._groups.kill_orphans(self.pid)
        self._pause = min(LONGEST_LOOK, self._pause * 2)
        self._look_in(self._pause)

    def _look_in(self, seconds: float) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self._looking = self._clock.callLater(seconds, self._look)

    def _finish(self) -> None:
        ended, self._ended = self._ended, None
        assert ended is not None
        assert self._ending is not None
        ended(self._ending)


def describe(reason: Failure) -> Ending:
    """Say how a process ended."""
    if not isinstance(reason.value, ProcessTerminated):
        return Ending("exited with code 0", clean=True)
    if reason.value.signal is None:
        return Ending(f"exited with code {reason.value.exitCode}", clean=False)
    return Ending(f"was killed by signal {_signal_name(reason.value.signal)}", clean=False)


def _signal_name(number: int) -> str:
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:
        return str(number)
