"""A journal under far more rows than a box has requests, on a real reactor and a real file."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from twisted.internet.task import LoopingCall

from llamaswap.activity.journal import Journal, JournalReactor
from llamaswap.activity.query import ActivityQuery
from llamaswap.activity.store import ActivityStore
from support.activity_rows import Ready, visit
from support.http1_sockets import on_sockets
from support.http1_sockets import reactor as running

pytestmark = pytest.mark.integration

ROWS_A_SECOND = 20_000
EVERY = 0.005  # seconds
SECONDS = 2.0


@pytest.mark.parametrize("kept", ["in a file", "in memory"])
@on_sockets
async def test_twenty_thousand_rows_a_second_are_all_stored_and_hold_nobody_up(
    kept: str, tmp_path: Path
) -> None:
    reactor = running()
    path = str(tmp_path / "a.db") if kept == "in a file" else None
    ids: list[int] = []
    journal = Journal(lambda: ActivityStore(path, 100_000), cast("JournalReactor", reactor), ids.append)
    journal.start()
    late: list[float] = []
    rows = 0
    began = last = reactor.seconds()

    def come() -> None:
        nonlocal rows, last
        now = reactor.seconds()
        late.append(now - last - EVERY)
        last = now
        while rows < ROWS_A_SECOND * (now - began):
            journal.leave(Ready(visit()))
            rows += 1

    coming = LoopingCall(come)
    ended = coming.start(EVERY)
    reactor.callLater(SECONDS, coming.stop)
    await ended
    total = (await journal.page(ActivityQuery(limit=1)))["total"]
    await journal.close()

    assert rows >= ROWS_A_SECOND * SECONDS * 0.9
    assert total == rows
    assert ids == list(range(1, rows + 1))
    late.sort()
    assert late[len(late) * 95 // 100] < 0.05  # seconds; a tenth of it where nobody else wants the processor
