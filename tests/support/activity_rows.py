"""Activity rows, and a reactor that hears from threads but only when told to listen."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from typing_extensions import override
from zope.interface import implementer

from llamaswap.activity.journal import JournalReactor
from llamaswap.activity.record import Activity
from llamaswap.activity.rows import Values, values_of
from llamaswap.activity.store import ActivityStore
from llamaswap.metering.usage import Usage

DEADLINE = 10.0  # real seconds that a thread may take before a test gives up


def visit(
    model: str = "m1",
    *,
    ended: float = 1_800_000_000.0,
    req_path: str = "/v1/chat/completions",
    status: int = 200,
    usage: Usage | None = None,
    duration_ms: int = 10,
    error_msg: str = "",
    metadata: dict[str, str] | None = None,
) -> Activity:
    """Make a row; only what a test is about needs saying."""
    return Activity(
        ended=ended,
        model=model,
        req_path=req_path,
        resp_content_type="application/json",
        resp_status_code=status,
        usage=usage or Usage(),
        duration_ms=duration_ms,
        error_msg=error_msg,
        metadata=metadata or {},
    )


def add_all(store: ActivityStore, rows: Sequence[Activity]) -> list[int]:
    """Do as `ActivityStore.add`, with rows that are not cut into columns yet."""
    return store.add([values_of(row) for row in rows])


class Ready:
    """Somebody who leaves a row that was there from the beginning; a `backlog.Entry`.

    Args:
        stored: called with the row's id once it can be read.
    """

    def __init__(self, row: Activity, stored: Callable[[int], None] | None = None) -> None:
        self._row = row
        self._stored = stored

    def activity(self) -> Activity:
        """Return the row."""
        return self._row

    def stored(self, row_id: int) -> None:
        """Pass the id on, if somebody wants to know."""
        if self._stored is not None:
            self._stored(row_id)


@implementer(JournalReactor)
class ListeningClock(Clock):
    """A Clock whose calls from threads wait until `listen_until` runs them in the test's thread."""

    def __init__(self) -> None:
        super().__init__()
        self._heard: queue.Queue[Callable[[], object]] = queue.Queue()

    def callFromThread(self, callable: Callable[..., Any], *args: object, **kwargs: object) -> None:  # noqa: A002 - Twisted's name
        self._heard.put(lambda: callable(*args, **kwargs))

    def listen_until(self, happened: Callable[[], object]) -> None:
        """Run what threads sent until `happened()`; fails when nothing comes for `DEADLINE` seconds."""
        while not happened():
            if any(call.getTime() <= self.seconds() for call in self.getDelayedCalls()):
                self.advance(0)  # the next turn, without a thread's help
            else:
                self._heard.get(timeout=DEADLINE)()

    def answer(self, asked: Deferred[Any]) -> Any:
        """Listen until a Deferred has its result, and return or raise it."""
        kept: list[Any] = []
        problems: list[Failure] = []
        asked.addCallbacks(kept.append, problems.append)
        self.listen_until(lambda: kept or problems)
        if problems:
            problems[0].raiseException()
        return kept[0]


class WeakStore(ActivityStore):
    """A store in memory that fails when told to, and remembers the batches it took."""

    def __init__(self) -> None:
        super().__init__(None, 100_000)
        self.trouble: Exception | None = None
        self.attempts = 0
        self.batches: list[int] = []

    @override
    def add(self, rows: Sequence[Values]) -> list[int]:
        self.attempts += 1
        if self.trouble is not None:
            raise self.trouble
        self.batches.append(len(rows))
        return super().add(rows)

    @override
    def page(self, query: Any) -> dict[str, Any]:
        if self.trouble is not None:
            raise self.trouble
        return super().page(query)
