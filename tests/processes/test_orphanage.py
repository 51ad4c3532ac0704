"""Which ended processes are reaped when orphans fall to us."""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest
from twisted.internet.task import Clock

from llamaswap.processes.orphanage import ROUND, Orphanage, reap_strangers
from support.processes_programs import zombies_of

PR_SET_CHILD_SUBREAPER = 36


@pytest.fixture
def _adopting() -> Iterator[None]:
    """Orphans of our children become our children, as they would with the first process."""
    libc = ctypes.CDLL(None)
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    yield
    libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10.0
    while not holds():
        assert time.monotonic() < deadline
        os.sched_yield()


@pytest.mark.usefixtures("_adopting")
def test_an_orphan_that_ended_is_reaped() -> None:
    subprocess.run(["sh", "-c", "sleep 0.05 & "], check=True, start_new_session=True)
    wait_until(lambda: zombies_of(os.getpid()) != [])
    (orphan,) = zombies_of(os.getpid())

    reap_strangers({orphan})
    assert zombies_of(os.getpid()) == [orphan]
    reap_strangers(())

    assert zombies_of(os.getpid()) == []


def test_what_somebody_here_waits_for_is_left_to_him() -> None:
    with subprocess.Popen(["sh", "-c", "exit 3"]) as process:
        wait_until(lambda: zombies_of(os.getpid()) == [process.pid])

        reap_strangers(())

        assert process.wait(timeout=10) == 3


def test_rounds_are_made_until_it_closes() -> None:
    clock = Clock()
    orphanage = Orphanage(clock)
    orphanage.open()
    orphanage.open()

    clock.advance(ROUND)
    assert len(clock.getDelayedCalls()) == 1
    orphanage.close()
    orphanage.close()

    assert clock.getDelayedCalls() == []
