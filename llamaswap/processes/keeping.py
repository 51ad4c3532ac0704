"""Have one small process that ends our children when we cannot.

Knows how to start the keeper, what to tell it, and to replace it when it
dies.  What the keeper does is `keeper`'s business.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Protocol

from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.interfaces import IDelayedCall, IReactorProcess, IReactorTime
from twisted.internet.protocol import ProcessProtocol
from twisted.logger import Logger
from twisted.python.failure import Failure
from typing_extensions import override

from llamaswap.processes import keeper

SOUND_LIFE = 1.0
"""A keeper that lived shorter, in seconds, is not replaced at once."""

RETRY = 30.0  # seconds
PARTING = 2.0
"""Seconds that a keeper has to leave once it was let go."""


class KeepingReactor(IReactorProcess, IReactorTime):
    """What it takes to run a keeper."""


class Watch(Protocol):
    """Sees to it that a child does not outlive the daemon."""

    def watch(self, pid: int) -> None:
        """From now on, what `pid` leads must not outlive the daemon."""
        ...

    def forget(self, pid: int) -> None:
        """Nothing of `pid` is left; its number is free for others."""
        ...

    def close(self) -> Deferred[None]:
        """Let the keeper go; it kills what was not forgotten.  Fires when it has gone."""
        ...


class Keeping:
    """The daemon's end of its keeper; a `Watch`.

    The keeper is started with the first child.  Trouble with it is logged and
    never in the way of a child.
    """

    _log = Logger()

    def __init__(self, reactor: KeepingReactor, launcher: tuple[str, ...] = ()) -> None:
        """Make ready; nothing is started yet.

        Args:
            launcher: words that give the keeper a session of its own sooner
                than it can do so itself: a signal to our group must not reach it.
        """
        self._reactor = reactor
        self._command = [*launcher, sys.executable, "-I", "-S", keeper.__file__]
        self._pids: set[int] = set()
        self._life: _KeeperLife | None = None
        self._retry: IDelayedCall | None = None
        self._warned = False
        self._closed = False

    def watch(self, pid: int) -> None:
        """See `Watch`."""
        self._pids.add(pid)
        if self._life is not None:
            self._life.tell(b"+%d\n" % pid)
        elif self._retry is None and not self._closed:
            self._start()

    def forget(self, pid: int) -> None:
        """See `Watch`."""
        self._pids.discard(pid)
        if self._life is not None:
            self._life.tell(b"-%d\n" % pid)

    def close(self) -> Deferred[None]:
        """See `Watch`."""
        self._closed = True
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        return succeed(None) if self._life is None else self._life.let_go()

    def _start(self) -> None:
        self._retry = None
        life = _KeeperLife(self._reactor, self._command)
        try:
            life.start()
        except OSError as error:
            self._lost(f"could not be started: {error}", lived=0.0)
            return
        self._life = life
        life.gone.addCallback(self._gone)
        for pid in sorted(self._pids):
            life.tell(b"+%d\n" % pid)

    def _gone(self, lived: float) -> None:
        self._life = None
        if not self._closed:
            self._lost(f"went away after {lived:.1f} s", lived)

    def _lost(self, why: str, lived: float) -> None:
        """Have a new one: at once, or a little later when that seems to be no use."""
        sound = lived >= SOUND_LIFE
        if sound or not self._warned:
            self._log.warn(
                "keeper.lost why={why}: until it is replaced, children may outlive a killed daemon", why=why
            )
        self._warned = not sound
        if sound:
            self._start()
        else:
            self._retry = self._reactor.callLater(RETRY, self._start)


class _KeeperLife(ProcessProtocol):
    """One keeper process, and the pipe to it."""

    def __init__(self, reactor: KeepingReactor, command: list[str]) -> None:
        self.gone: Deferred[float] = Deferred()  # seconds that it lived
        self._reactor = reactor
        self._command = command
        self._pipe = -1
        self._born = reactor.seconds()
        self._waiting: Deferred[None] | None = None

    def start(self) -> None:
        """Raises OSError when there is no room for another process."""
        reading, self._pipe = os.pipe()
        # A keeper that does not read must not stop the daemon.
        os.set_blocking(self._pipe, False)
        nowhere = os.open(os.devnull, os.O_RDWR)
        try:
            self._reactor.spawnProcess(
                self,
                self._command[0],
                self._command,
                env=None,
                childFDs={0: reading, 1: nowhere, 2: nowhere},
            )
        except OSError:
            self._hang_up()
            raise
        finally:
            os.close(reading)
            os.close(nowhere)

    def tell(self, line: bytes) -> None:
        """Pass a line on at once: a later turn of the reactor may never come."""
        if self._pipe < 0:
            return
        try:
            os.write(self._pipe, line)
        except OSError:  # it is gone or stuck; only a new one helps
            self._end()

    def let_go(self) -> Deferred[None]:
        """Close the pipe; fires when the process has gone."""
        if self._waiting is None:
            self._waiting = Deferred()
            self._hang_up()
            killing = self._reactor.callLater(PARTING, self._end)
            self._waiting.addCallback(lambda _: killing.cancel() if killing.active() else None)
        return self._waiting

    @override
    def processExited(self, reason: Failure) -> None:
        self._hang_up()
        # Not before its owner has heard of it: this may be within spawnProcess.
        self._reactor.callLater(0, self._tell_owner)

    def _tell_owner(self) -> None:
        self.gone.callback(self._reactor.seconds() - self._born)
        if self._waiting is not None:
            self._waiting.callback(None)

    def _end(self) -> None:
        self._hang_up()
        if self.transport is not None:
            with suppress(ProcessExitedAlready):
                self.transport.signalProcess("KILL")

    def _hang_up(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
