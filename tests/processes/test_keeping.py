"""What the keeper is told, and that there is always one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import cast

import pytest
from twisted.logger import capturedLogs

from llamaswap.processes import keeper
from llamaswap.processes.keeping import PARTING, RETRY, SOUND_LIFE, Keeping, KeepingReactor
from support.processes_fakes import Outcome
from support.processes_spawns import Spawned, SpawnReactor


@pytest.fixture
def reactor() -> Iterator[SpawnReactor]:
    reactor = SpawnReactor()
    yield reactor
    reactor.close()


def keeping_on(reactor: SpawnReactor) -> Keeping:
    return Keeping(cast("KeepingReactor", reactor), ("/setsid",))


def told(process: Spawned) -> bytes:
    """What has been written to a keeper so far and not been looked at."""
    os.set_blocking(process.descriptors[0], False)
    try:
        return os.read(process.descriptors[0], 4096)
    except BlockingIOError:
        return b""


def test_a_keeper_is_started_with_the_first_child_and_only_then(reactor: SpawnReactor) -> None:
    keeping = keeping_on(reactor)
    assert reactor.spawned == []

    keeping.watch(7)
    keeping.watch(8)
    keeping.forget(7)

    (process,) = reactor.spawned
    assert process.words == ["/setsid", sys.executable, "-I", "-S", keeper.__file__]
    assert told(process) == b"+7\n+8\n-7\n"
    Outcome(keeping.close())


def test_a_keeper_that_dies_is_replaced_and_told_who_still_runs(reactor: SpawnReactor) -> None:
    keeping = keeping_on(reactor)
    keeping.watch(7)
    keeping.watch(8)
    keeping.forget(7)
    reactor.advance(SOUND_LIFE)

    with capturedLogs() as logged:
        reactor.spawned[0].ends(1)
        reactor.advance(0)

    assert told(reactor.spawned[1]) == b"+8\n"
    assert len(logged) == 1
    Outcome(keeping.close())


def test_a_keeper_that_dies_again_and_again_is_retried_slowly_and_complained_about_once(
    reactor: SpawnReactor,
) -> None:
    keeping = keeping_on(reactor)
    keeping.watch(7)

    with capturedLogs() as logged:
        for _ in range(5):
            reactor.spawned[-1].ends(1)
            reactor.advance(0)
            reactor.advance(RETRY)

    assert len(reactor.spawned) == 6
    assert len(logged) == 1
    Outcome(keeping.close())


def test_without_a_keeper_children_run_all_the_same(reactor: SpawnReactor) -> None:
    keeping = keeping_on(reactor)
    reactor.refusal = OSError("no room")

    with capturedLogs() as logged:
        keeping.watch(7)
        keeping.watch(8)
        keeping.forget(7)
    reactor.refusal = None
    reactor.advance(RETRY)

    assert [event["why"] for event in logged] == ["could not be started: no room"]
    assert told(reactor.spawned[0]) == b"+8\n"
    Outcome(keeping.close())


def test_a_keeper_that_does_not_read_is_killed_and_not_waited_for(reactor: SpawnReactor) -> None:
    keeping = keeping_on(reactor)
    keeping.watch(7)

    for _ in range(40_000):
        keeping.watch(1234567)

    assert reactor.spawned[0].signals == ["KILL"]
    Outcome(keeping.close())


def test_closing_lets_the_keeper_go_and_waits_for_it(reactor: SpawnReactor) -> None:
    keeping = keeping_on(reactor)
    keeping.watch(7)
    outcome = Outcome(keeping.close())
    assert told(reactor.spawned[0]) == b"+7\n"
    assert os.read(reactor.spawned[0].descriptors[0], 1) == b""

    assert outcome.pending
    reactor.spawned[0].ends()
    reactor.advance(0)

    assert outcome.succeeded
    assert len(reactor.spawned) == 1
    assert reactor.getDelayedCalls() == []


def test_a_keeper_that_does_not_go_is_killed(reactor: SpawnReactor) -> None:
    keeping = keeping_on(reactor)
    keeping.watch(7)
    Outcome(keeping.close())

    reactor.advance(PARTING)

    assert reactor.spawned[0].signals == ["KILL"]


def test_closing_what_was_never_used_is_done_at_once(reactor: SpawnReactor) -> None:
    assert Outcome(keeping_on(reactor).close()).succeeded
