"""The end of what runs: first the jobs, then the models' servers, all within one budget of time.

Knows how long each may take, and how short that becomes in a hurry.  What else belongs to
stopping a daemon, and in which order, is the service's affair.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger

from llamaswap.engine import Engine

OVERTIME = 15.0
"""Seconds after the last signal in which whatever can end has ended, the groups of the servers included.

Who is still there hangs in the kernel.  It ends when it comes out of there: the signal waits for it.
"""

STALLED = 5.0
"""Seconds after which clients that take nothing of their answers are waited for no longer."""

LOOK_EVERY = 0.1  # seconds between two looks at what clients have taken


class Ending:
    """How one engine ends.

    Args:
        budget: seconds for the jobs, and what they leave of it for the servers.
        grace: seconds that a server gets at least, and at most in a hurry.
        elsewhere: as `Engine.when_idle`, of jobs that other servers do for us.
    """

    _log = Logger()

    def __init__(
        self,
        engine: Engine,
        clock: IReactorTime,
        *,
        budget: float,
        grace: float,
        elsewhere: Callable[[], Deferred[None]] = lambda: succeed(None),
    ) -> None:
        self._engine = engine
        self._elsewhere = elsewhere
        self._clock = clock
        self._budget = budget
        self._grace = grace
        self._until = 0.0
        self._hurries = 0
        self._jobs: Deferred[None] | None = None
        self._giving_up: IDelayedCall | None = None  # while servers end

    @property
    def in_a_hurry(self) -> bool:
        """Whether nothing is waited for that can be cut."""
        return self._hurries > 0

    def begin(self) -> None:
        """The time counts from now on."""
        self._until = self._clock.seconds() + self._budget

    def hurry(self) -> None:
        """Cut the running jobs; servers get a short grace, and none when they are hurried once more."""
        self._hurries += 1
        self._log.warn("service.hurried grace={grace}s", grace=self._short_grace())
        if self._jobs is not None:
            self._jobs.cancel()
        elif self._giving_up is not None:
            self._giving_up.reset(self._short_grace() + OVERTIME)
            for server in tuple(self._engine.fleet.values()):
                server.shutdown(self._short_grace())

    async def jobs(self) -> None:
        """Wait for the running jobs, but not longer than the budget allows."""
        if self.in_a_hurry:
            return
        self._jobs = idle = Deferred.fromCoroutine(self._all_idle())
        cutting = self._clock.callLater(self._budget, idle.cancel)
        try:
            await idle
        except CancelledError:
            if not self.in_a_hurry:
                self._log.warn("service.jobs_cut after={patience}s", patience=self._budget)
        finally:
            self._jobs = None
            if cutting.active():
                cutting.cancel()

    async def servers(self) -> None:
        """Stop every server for good, and wait until nothing of them is left that can end."""
        left = max(self._until - self._clock.seconds(), self._grace)
        grace = self._short_grace() if self.in_a_hurry else left
        gone = Deferred.fromCoroutine(self._engine.end(grace))
        self._giving_up = self._clock.callLater(grace + OVERTIME, gone.cancel)
        with suppress(CancelledError):
            await gone
        if self._giving_up.active():
            self._giving_up.cancel()
        self._giving_up = None
        for name, server in self._engine.fleet.items():
            if (pid := server.report().pid) is not None:
                self._log.error("service.server_left_behind model={model} pid={pid}", model=name, pid=pid)

    async def answers(self, untaken: Callable[[], int]) -> None:
        """Wait while clients take the rest of their answers, but not longer than the budget allows.

        Args:
            untaken: bytes that are still on their way to them.
        """
        for _ in range(2):  # what has just come is ended in one turn, and its connection in the next
            await deferLater(self._clock, 0)
        left, now = untaken(), self._clock.seconds()
        stalled = now + STALLED
        while left and not self.in_a_hurry and now < min(stalled, self._until):
            await deferLater(self._clock, LOOK_EVERY)
            before, left, now = left, untaken(), self._clock.seconds()
            if left < before:
                stalled = now + STALLED

    async def _all_idle(self) -> None:
        await self._engine.when_idle()
        await self._elsewhere()

    def _short_grace(self) -> float:
        return self._grace if self._hurries < 2 else 0.0
