"""The guest book's clerk: takes rows at once, writes them on a thread of its own.

Knows threads, timers and what to do while the store fails; does not know SQL, nor what a row means.  Which
rows wait, and how many go at once, is `backlog`'s business.
All state here belongs to the reactor's thread; only calls into the store cross over, one by one and in order.

A batch costs the reactor some 60 us, most of it for waking the other thread and hearing from it, and whenever
that thread works it takes the interpreter from the one that serves.  So rows are gathered: for a moment, or
until they are enough.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from twisted.internet import defer
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorFromThreads, IReactorTime
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool

from llamaswap.activity.backlog import Backlog, Entry
from llamaswap.activity.query import ActivityQuery
from llamaswap.activity.rows import Values
from llamaswap.activity.store import ActivityStore

GATHER: Final = 0.05  # seconds that a row may wait for others
RETRY: Final = 5.0  # seconds between attempts while the store fails
PATIENCE: Final = 10.0  # seconds that closing may take
TOLD_AT_ONCE: Final = 10  # rows whose ids are told in one turn: others want to be served in between

_STORE_TROUBLE: Final = (sqlite3.Error, OSError)


T = TypeVar("T")


class JournalReactor(IReactorFromThreads, IReactorTime):
    """What it takes to hear back from the thread, and to try again later."""


class StoreFailed(Exception):
    """The store could not answer a question; the text says why."""


class JournalClosed(Exception):
    """The journal was not started, or is closed."""


class Journal:
    """Writes activity rows in the order of their arrival, and answers questions about them.

    A row is written `GATHER` seconds after it came, or as soon as `ENOUGH` wait, or when somebody asks.
    Where the store is slower than the rows that come, or fails, the newest `MOST_WAITING` of them wait, and
    one line in the log says what was lost.

    Args:
        open_store: called by `start`; the store then belongs to the journal, which closes it.
        reactor: the thread that everything but the store runs in.
        written: called with the id of each row after it was stored, in order.
    """

    _log = Logger()
    # A fault of who hears of one row must not cost the rows behind it: their loop goes on where it was.
    _faults = _log.failureHandler("activity.journal_broke")

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
        self._backlog = Backlog()
        self._due: IDelayedCall | None = None  # the end of gathering
        self._writing: Deferred[None] | None = None
        self._followers: list[Deferred[None]] = []  # of the batch that is being written
        self._retry: IDelayedCall | None = None
        self._failing = False
        self._ended = False
        self._closing: Deferred[None] | None = None
        self._heir: Journal | None = None

    @property
    def waiting(self) -> int:
        """How many rows are not handed to the store yet."""
        return len(self._backlog)

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
        self._write_all()

    def leave(self, entry: Entry) -> None:
        """Take a row; never waits and never fails.  Rows that come after `close` are not kept."""
        if self._heir is not None:
            self._heir.leave(entry)
            return
        if self._ended:
            return
        if self._backlog.add(entry):
            self._write_on()
        elif self._due is None:
            self._due = self._reactor.callLater(GATHER, self._gathered)

    def page(self, query: ActivityQuery) -> Deferred[dict[str, Any]]:
        """Ask for a page of rows; fails with `StoreFailed` or `JournalClosed`."""
        return Deferred.fromCoroutine(self._ask(lambda store: store.page(query)))

    def stats(self, model: str | None) -> Deferred[dict[str, Any]]:
        """Ask for the sums over all rows or one model's; fails with `StoreFailed` or `JournalClosed`."""
        return Deferred.fromCoroutine(self._ask(lambda store: store.stats(model)))

    def look(self, question: Callable[[ActivityStore], T]) -> Deferred[T]:
        """Ask something of the rows that the store has by now, without those that wait.

        Whoever asks before a request comes hears nothing of its row.  The question is put on the writing
        thread, and no row is written meanwhile.  Fails with `StoreFailed` or `JournalClosed`.
        """
        return Deferred.fromCoroutine(self._ask(question, of_all=False))

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

        What is only gathered is written first.  Rows that are being written stay here, and nobody is told
        their ids: in the other store they mean nothing.
        """
        self._write_all()
        self._heir = heir
        self._pass_on(self._backlog.take_all())
        return self.close()

    def _pass_on(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self.leave(entry)

    def _gathered(self) -> None:
        self._due = None
        self._write_all()

    def _write_all(self) -> None:
        """Write what waits now; what comes meanwhile may be gathered."""
        self._backlog.want_all()
        self._write_on()

    def _write_on(self) -> None:
        """Start writing unless that goes on already, or has to wait."""
        if self._store is None or self._pool is None or self._writing is not None or self._retry is not None:
            return
        self._writing = Deferred.fromCoroutine(self._write_waiting(self._store, self._pool))
        self._writing.addErrback(self._mishap)
        self._writing.addCallback(self._pause)

    async def _write_waiting(self, store: ActivityStore, pool: ThreadPool) -> None:
        while self._backlog.due:
            batch, rows = self._backlog.next_batch()
            try:
                ids = await deferToThreadPool(self._reactor, pool, store.add, rows)
            except _STORE_TROUBLE as error:
                self._put_back(batch, rows, error)
                return
            self._works_again()
            for start in range(0, len(batch), TOLD_AT_ONCE):
                if start:
                    await deferLater(self._reactor, 0)
                if self._heir is None:
                    self._tell(ids[start : start + TOLD_AT_ONCE], batch[start : start + TOLD_AT_ONCE])
            self._tell_followers()

    def _tell(self, ids: Sequence[int], batch: Sequence[Entry]) -> None:
        written, told = self._written, False
        left = zip(ids, batch, strict=False)
        while not told:
            with self._faults:
                for row_id, entry in left:
                    entry.stored(row_id)
                    written(row_id)
                told = True

    def _tell_followers(self) -> None:
        followers, self._followers = self._followers, []
        for follower in followers:
            follower.callback(None)

    def _pause(self, _result: None) -> None:
        self._writing = None
        self._tell_followers()
        if self._backlog.due and not self._failing:
            self._write_on()

    def _put_back(self, batch: Sequence[Entry], rows: Sequence[Values], error: Exception) -> None:
        if self._heir is not None:
            self._pass_on(batch)
            return
        self._backlog.put_back(batch, rows)
        if not self._failing:
            self._failing = True
            self._log.warn(
                "activity.store_failed why={why} waiting={waiting}", why=str(error), waiting=len(batch)
            )
        if not self._ended:
            self._retry = self._reactor.callLater(RETRY, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        self._write_all()

    def _works_again(self) -> None:
        backlog = self._backlog
        if self._failing or backlog.dropped:
            self._log.info("activity.store_works_again lost={lost}", lost=backlog.dropped)
        self._failing, backlog.dropped = False, 0

    def aside(self, work: Callable[[], T]) -> Deferred[T]:
        """Do something on the writing thread, between batches; fails as `work` does, or `JournalClosed`."""
        if self._pool is None or self._ended:
            return defer.fail(JournalClosed("the activity journal is closed"))
        return deferToThreadPool(self._reactor, self._pool, work)

    async def _ask(self, question: Callable[[ActivityStore], T], *, of_all: bool = True) -> T:
        if self._store is None or self._pool is None or self._ended:
            raise JournalClosed("the activity journal is closed")
        if of_all:
            await self._caught_up()
        try:
            return await deferToThreadPool(self._reactor, self._pool, question, self._store)
        except _STORE_TROUBLE as error:
            raise StoreFailed(str(error)) from error

    async def _caught_up(self) -> None:
        """Wait until every row that was left before now is with the store, or can't be for the time being."""
        backlog = self._backlog
        before = backlog.left
        self._write_all()
        while self._writing is not None and backlog.gone < before:
            follower: Deferred[None] = Deferred()
            self._followers.append(follower)
            await follower

    async def _finish(self) -> None:
        store, pool = self._store, self._pool
        for timer in (self._due, self._retry):
            if timer is not None:
                timer.cancel()
        self._due = self._retry = None
        if store is None or pool is None:
            return
        self._write_all()
        while self._writing is not None:
            await _follow(self._writing)
        try:
            await deferToThreadPool(self._reactor, pool, store.close)
        except _STORE_TROUBLE as error:
            self._log.warn("activity.close_failed why={why}", why=str(error))
        # Not in a `finally`: stopping waits for the thread, which by now has nothing left to do.
        pool.stop()
        if self._backlog:
            self._log.warn("activity.rows_lost lost={lost}", lost=len(self._backlog) + self._backlog.dropped)

    def _mishap(self, failure: Failure) -> None:
        if failure.check(defer.TimeoutError):
            self._log.warn("activity.close_gave_up waiting={waiting}", waiting=self.waiting)
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
