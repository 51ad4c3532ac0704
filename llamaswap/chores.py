"""Background coroutines with an owner: logged when they fail, cancelled at the end."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure


class Chores:
    """The work that nobody awaits; it never outlives its owner."""

    _log = Logger()

    def __init__(self) -> None:
        self._running: dict[Deferred[None], str] = {}

    def start(self, name: str, work: Coroutine[Deferred[Any], Any, None]) -> Deferred[None]:
        """Run a coroutine until it ends, fails (which is logged under `name`) or is cancelled."""
        chore = Deferred.fromCoroutine(work)
        self._running[chore] = name
        chore.addErrback(self._failed, name)
        chore.addBoth(self._ended, chore)
        return chore

    def cancel_all(self) -> None:
        """Cancel everything that still runs."""
        for chore in list(self._running):
            chore.cancel()

    def _failed(self, failure: Failure, name: str) -> None:
        if not failure.check(CancelledError):
            self._log.failure("chores.failed chore={chore}", failure, chore=name)

    def _ended(self, result: None, chore: Deferred[None]) -> None:
        del self._running[chore]
