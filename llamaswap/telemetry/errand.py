"""Ask a source that may block, on a thread that nobody has to wait for.

A source that hangs costs one thread and its answers, nothing else: the thread is a daemon, it is asked no
second question while it hangs, and what it brings too late is thrown away.  One that fails is opened anew, at
growing intervals.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Generic, TypeVar

from twisted.internet.defer import Deferred, execute, maybeDeferred, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorFromThreads, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from llamaswap.telemetry.sources import Source, SourceAbsent, SourceFailed

T = TypeVar("T")

Run = Callable[[Callable[[], Any]], Deferred[Any]]
"""Runs a function that may block; `in_thread`, its reactor given."""

FIRST_REST: Final = 5.0  # seconds without a question after a failure
LONGEST_REST: Final = 300.0


def in_thread(reactor: IReactorFromThreads, work: Callable[[], T]) -> Deferred[T]:
    """Run `work` on a thread of its own.

    Not on the reactor's pool: its threads are waited for when the process ends, and a driver may hang.
    """
    done: Deferred[T] = Deferred()

    def run() -> None:
        execute(work).addBoth(lambda outcome: reactor.callFromThread(done.callback, outcome))

    threading.Thread(target=run, name="telemetry", daemon=True).start()
    return done


class Errand(Generic[T]):
    """Brings answers of one source, or None where it has none now.

    Args:
        what: names the source in the log.
        open_source: opens it, on the thread; it may block, and raise `SourceFailed`.
        run: runs what may block.
        patience: seconds after which an answer is not waited for any more.
    """

    _log = Logger()

    def __init__(
        self,
        what: str,
        open_source: Callable[[], Source[T]],
        *,
        run: Run,
        clock: IReactorTime,
        patience: float,
    ) -> None:
        self._what = what
        self._open = open_source
        self._run = run
        self._clock = clock
        self._patience = patience
        self._source: Source[T] | None = None  # only the thread under way touches it
        self._under_way = False
        self._failures = 0  # in a row
        self._rests_until = float("-inf")  # seconds on the clock
        self._answer: Deferred[T | None] | None = None  # None: nobody waits for one any more
        self._patience_ends: IDelayedCall | None = None
        self._hanging = False
        self._over = False

    def ask(self) -> Deferred[T | None]:
        """Ask once; None at once while an older question hangs or the source has a rest.  Never fails."""
        if self._under_way or self._over or self._clock.seconds() < self._rests_until:
            return succeed(None)
        self._under_way = True
        answer = self._answer = Deferred()
        self._patience_ends = self._clock.callLater(self._patience, self._gave_up)
        asked = maybeDeferred(self._run, self._read)
        asked.addBoth(self._came_back)
        asked.addCallbacks(self._understood, self._misunderstood)
        asked.addCallback(self._bring)
        return answer

    def end(self) -> None:
        """Ask no more; the source is closed unless it hangs."""
        self._over = True
        self._bring(None)
        if not self._under_way:
            maybeDeferred(self._run, self._let_go).addErrback(self._broke)

    def _came_back(self, outcome: T | Failure) -> T | Failure:
        self._under_way = False
        if self._hanging:
            self._hanging = False
            self._log.info("telemetry.answers_again source={source}", source=self._what)
        if self._over:
            self.end()
        return outcome

    def _understood(self, result: T) -> T | None:
        if self._failures:
            self._log.info("telemetry.works_again source={source}", source=self._what)
        self._failures = 0
        return result

    def _misunderstood(self, failure: Failure) -> None:
        self._failures += 1
        rest = min(FIRST_REST * 2 ** min(self._failures - 1, 10), LONGEST_REST)
        if failure.check(SourceAbsent):
            rest = LONGEST_REST
        self._rests_until = self._clock.seconds() + rest
        if self._failures > 1:
            return
        why = str(failure.value)
        if failure.check(SourceAbsent):
            self._log.info("telemetry.nothing_found source={source} why={why}", source=self._what, why=why)
        elif failure.check(SourceFailed):
            self._log.warn("telemetry.failed source={source} why={why}", source=self._what, why=why)
        else:
            self._broke(failure)

    def _gave_up(self) -> None:
        self._hanging = True
        self._log.warn(
            "telemetry.hangs source={source} after={after:g}s", source=self._what, after=self._patience
        )
        self._bring(None)

    def _bring(self, result: T | None) -> None:
        """Answer who waits; what comes after that is thrown away."""
        answer, self._answer = self._answer, None
        patience, self._patience_ends = self._patience_ends, None
        if patience is not None and patience.active():
            patience.cancel()
        if answer is not None:
            answer.callback(result)

    def _broke(self, failure: Failure) -> None:
        self._log.failure("telemetry.broke source={source}", failure, source=self._what)

    # On the thread.

    def _read(self) -> T:
        if self._source is None:
            self._source = self._open()
        try:
            return self._source.read()
        except SourceFailed:
            self._let_go()
            raise

    def _let_go(self) -> None:
        source, self._source = self._source, None
        if source is not None:
            source.close()


def runner(reactor: IReactorFromThreads) -> Run:
    """Return what runs things on threads of this reactor."""
    return partial(in_thread, reactor)
