"""Tell others what happened, after the teller is in order again.

Whoever is told may call straight back.  Knows calls and their order; not what
they are about.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.logger import Logger


class Outbox:
    """Calls to be made at the end of a piece of work, in the order they were posted."""

    _log = Logger()

    def __init__(self) -> None:
        self._calls: deque[Callable[[], None]] = deque()
        self._delivering = False

    def post(self, call: Callable[[], None]) -> None:
        """Make `call` at the next delivery; what it raises is logged."""
        self._calls.append(call)

    def deliver(self) -> None:
        """Make every call.

        A call may lead back here: then the delivery under way, which is
        further up, makes the new ones too.
        """
        if self._delivering:
            return
        self._delivering = True
        while self._calls:
            # One listener's mistake is not another's, and must not stop the rest.
            maybeDeferred(self._calls.popleft()).addErrback(
                lambda failure: self._log.failure("process.listener_failed", failure)
            )
        self._delivering = False


class Waiters:
    """Deferreds that wait for one thing; each is answered once, or cancelled."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._waiting: list[Deferred[None]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self) -> Deferred[None]:
        """One more; cancelling it takes it away and changes nothing else."""
        waiter: Deferred[None] = Deferred(self._left)
        self._waiting.append(waiter)
        return waiter

    def answer(self, error: Exception | None = None) -> None:
        """Post the answer to all that wait now: success, or `error`."""
        for waiter in self._take():
            self._outbox.post(partial(_fire, waiter, error))

    def _take(self) -> list[Deferred[None]]:
        waiting, self._waiting = self._waiting, []
        return waiting

    def _left(self, waiter: Deferred[None]) -> None:
        if waiter in self._waiting:
            self._waiting.remove(waiter)


def _fire(waiter: Deferred[None], error: Exception | None) -> None:
    if waiter.called:  # cancelled in the meantime
        return
    if error is None:
        waiter.callback(None)
    else:
        waiter.errback(error)
