"""The guest book's clerk: takes rows at once, writes them on a thread of its own.

Knows waiting, batching and what to do while the store fails; does not know SQL, nor what a row means.
All state here belongs to the reactor's thread; only calls into the store cross over, one by one and in order.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from twisted.internet import defer
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorFromThreads, IReactorTime
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool

from llamaswap.activity.query import ActivityQuery
from llamaswap.activity.record import Activity
from llamaswap.activity.store import ActivityStore

MOST_WAITING: Final = 10_000  # rows
RETRY: Final = 5.0  # seconds between attempts while the store fails
PATIENCE: Final = 10.0  # seconds that closing may take

_STORE_TROUBLE: Final = (sqlite3.Error, OSError)


class JournalReactor(IReactorFromThreads, IReactorTime):
    """What it takes to hear back from the thread, and to try again later."""


class StoreFailed(Exception):
    """The store could not answer a question; the text says why."""


class JournalClosed(Exception):
    """The journal was not started, or is closed."""


Stored = Callable[[int], None]
"""Told the id of a row that has been stored."""

_Entry = tuple[Activity, Stored | None]


class Journal:
    """Writes activity rows in the order of their arrival, and answers questions about them.

    A row that arrives while another is written goes into the next batch.  While the store fails, the newest
    `MOST_WAITING` rows wait, and one line in the log says so.

    Args:
        open_store: called by `start`; the store then belongs to the journal, which closes it.
        reactor: the thread that everything but the store runs in.
        written: called with the id of each row after it was stored, in order.
    """

    _log = Logger()

    def __init__(
        self,
        open_store: Callable[[], ActivityStore],
        reactor: JournalReactor,
        written: Callable[[int], None] = lambda _row_id: None,
    ) -> None:
        self._open_store = open_store
        self._reactor = reactor
        self._written = written
        self._store: ActivityStore | None = None
        self._pool: ThreadPool | None = None
        self._waiting: deque[_Entry] = deque()
        self._dropped = 0
        self._writing: Deferred[None] | None = None
        self._retry: IDelayedCall | None = None
        self._failing = False
        self._ended = False
        self._closing: Deferred[None] | None = None
        self._heir: Journal | None = None

    @property
    def waiting(self) -> int:
        """How many rows are not handed to the store yet."""
        return len(self._waiting)

    @property
    def dropped(self) -> int:
        """How many rows were lost since the store began to fail; 0 when it works."""
        return self._dropped

    def start(self) -> None:
        """Open the store, in the caller's thread, and start the writing one.

        Raises:
            StoreUnusable: the journal then is as if never started.
        """
        self._store = self._open_store()
        self._pool = ThreadPool(minthreads=1, maxthreads=1, name="activity journal")
        # A disk that never answers must not keep the process from ending.
        self._pool.threadFactory = partial(threading.Thread, daemon=True)  # type: ignore[assignment]  # same call
        self._pool.start()
        self._write_on()

    def write(self, activity: Activity, stored: Stored | None = None) -> None:
        """Take a row; never waits and never fails.  Rows that come after `close` are not kept.

        Args:
            stored: called with the row's id once it can be read; never for a row that is lost.
        """
        if self._heir is not None:
            self._heir.write(activity, stored)
            return
        if self._ended:
            return
        self._waiting.append((activity, stored))
        self._trim()
        self._write_on()

    def page(self, query: ActivityQuery) -> Deferred[dict[str, Any]]:
        """Ask for a page of rows; fails with `StoreFailed` or `JournalClosed`."""
        return Deferred.fromCoroutine(self._ask(lambda store: store.page(query)))

    def stats(self, model: str | None) -> Deferred[dict[str, Any]]:
        """Ask for the sums over all rows or one model's; fails with `StoreFailed` or `JournalClosed`."""
        return Deferred.fromCoroutine(self._ask(lambda store: store.stats(model)))

    def close(self) -> Deferred[None]:
        """Write what waits, close the store and end the thread, within `PATIENCE` seconds; never fails."""
        if self._closing is None:
            self._ended = True
            self._closing = Deferred.fromCoroutine(self._finish())
            self._closing.addTimeout(PATIENCE, self._reactor)
            self._closing.addErrback(self._mishap)
        return _follow(self._closing)

    def hand_over(self, heir: Journal) -> Deferred[None]:
        """Close as `close` does; `heir`, another store's journal, gets what waits and what still comes.

        Rows that are being written stay here, and nobody is told their ids: in the other store they mean
        nothing.
        """
        self._heir = heir
        waiting = tuple(self._waiting)
        self._waiting.clear()
        self._pass_on(waiting)
        return self.close()

    def _pass_on(self, entries: tuple[_Entry, ...]) -> None:
        for entry in entries:
            self.write(*entry)

    def _write_on(self) -> None:
        """Start writing unless that goes on already, or has to wait."""
        if self._store is None or self._pool is None or self._writing is not None or self._retry is not None:
            return
        self._writing = Deferred.fromCoroutine(self._write_waiting(self._store, self._pool))
        self._writing.addErrback(self._mishap)
        self._writing.addCallback(self._pause)

    async def _write_waiting(self, store: ActivityStore, pool: ThreadPool) -> None:
        while self._waiting:
            batch = tuple(self._waiting)
            self._waiting.clear()
            try:
                ids = await deferToThreadPool(self._reactor, pool, store.add_all, [row for row, _ in batch])
            except _STORE_TROUBLE as error:
                self._put_back(batch, error)
                return
            self._works_again()
            if self._heir is not None:
                continue
            for row_id, (_, stored) in zip(ids, batch, strict=True):
                if stored is not None:
                    stored(row_id)
                self._written(row_id)

    def _pause(self, _result: None) -> None:
        self._writing = None
        if self._waiting and not self._failing:
            self._write_on()

    def _put_back(self, batch: tuple[_Entry, ...], error: Exception) -> None:
        if self._heir is not None:
            self._pass_on(batch)
            return
        self._waiting.extendleft(reversed(batch))
        self._trim()
        if not self._failing:
            self._failing = True
            self._log.warn(
                "activity.store_failed why={why} waiting={waiting}", why=str(error), waiting=len(batch)
            )
        if not self._ended:
            self._retry = self._reactor.callLater(RETRY, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        self._write_on()

    def _works_again(self) -> None:
        if self._failing or self._dropped:
            self._log.info("activity.store_works_again lost={lost}", lost=self._dropped)
        self._failing, self._dropped = False, 0

    def _trim(self) -> None:
        while len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
            self._dropped += 1

    async def _ask(self, question: Callable[[ActivityStore], dict[str, Any]]) -> dict[str, Any]:
        if self._store is None or self._pool is None or self._ended:
            raise JournalClosed("the activity journal is closed")
        try:
            return await deferToThreadPool(self._reactor, self._pool, question, self._store)
        except _STORE_TROUBLE as error:
            raise StoreFailed(str(error)) from error

    async def _finish(self) -> None:
        store, pool = self._store, self._pool
        if store is None or pool is None:
            return
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        self._write_on()
        while self._writing is not None:
            await _follow(self._writing)
        try:
            await deferToThreadPool(self._reactor, pool, store.close)
        except _STORE_TROUBLE as error:
            self._log.warn("activity.close_failed why={why}", why=str(error))
        # Not in a `finally`: stopping waits for the thread, which by now has nothing left to do.
        pool.stop()
        if self._waiting:
            self._log.warn("activity.rows_lost lost={lost}", lost=len(self._waiting) + self._dropped)

    def _mishap(self, failure: Failure) -> None:
        if failure.check(defer.TimeoutError):
            self._log.warn("activity.close_gave_up waiting={waiting}", waiting=len(self._waiting))
        else:
            self._log.failure("activity.journal_broke", failure)


def _follow(deferred: Deferred[None]) -> Deferred[None]:
    """Make a Deferred that fires when another has, and that may be cancelled without touching it."""
    follower: Deferred[None] = Deferred()

    def pass_on(result: None) -> None:
        if not follower.called:
            follower.callback(result)

    deferred.addCallback(pass_on)
    return follower
