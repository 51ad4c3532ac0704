"""In which order a child's end arrives, and that nothing of it stays."""

from __future__ import annotations

import signal

import pytest
from twisted.internet.error import ProcessDone, ProcessTerminated
from twisted.python.failure import Failure

from llamaswap.processes.child import (
    BACKSTOP,
    FIRST_ROUND,
    LONGEST_LOOK,
    REAPING,
    ChildProcess,
    Ending,
    describe,
)
from support.processes_spawns import FakeGroups, Spawned, SpawnReactor


class Followed:
    """A child process among fakes."""

    def __init__(self) -> None:
        self.reactor = SpawnReactor()
        self.groups = FakeGroups()
        self.endings: list[Ending] = []
        self.strays: list[int] = []
        self.child = ChildProcess(self.groups, self.reactor, self.endings.append, self.strays.append)
        self.process: Spawned = self.reactor.spawnProcess(self.child, "serve", ["serve"])

    def pass_time(self, seconds: float) -> None:
        """Let every timer up to then go off."""
        self.reactor.pump([0.05] * round(seconds / 0.05))


def test_the_end_is_told_when_the_child_has_exited_and_its_output_is_closed() -> None:
    followed = Followed()

    followed.process.ends(3)
    followed.pass_time(1.0)
    assert followed.endings == []
    followed.child.output_closed()
    followed.reactor.advance(0)

    assert followed.endings == [Ending("exited with code 3", clean=False)]
    assert followed.reactor.getDelayedCalls() == []


def test_the_end_is_never_told_from_within_the_news_of_it() -> None:
    followed = Followed()
    followed.child.output_closed()

    followed.process.ends()

    assert followed.endings == []
    followed.reactor.advance(0)
    assert followed.endings == [Ending("exited with code 0", clean=True)]


def test_closed_output_alone_is_no_end() -> None:
    followed = Followed()

    followed.child.output_closed()
    followed.pass_time(20.0)

    assert followed.endings == []


def test_a_descendant_holds_up_the_end_for_ten_seconds_then_it_is_killed() -> None:
    followed = Followed()
    followed.groups.left = {followed.child.pid}
    followed.process.ends(1)

    followed.pass_time(BACKSTOP - 0.1)
    assert followed.groups.killed == []
    assert followed.endings == []
    followed.pass_time(2 * LONGEST_LOOK + 0.2)

    assert followed.groups.killed == [followed.child.pid]
    assert len(followed.endings) == 1


def test_a_descendant_that_has_nothing_to_say_is_killed_at_once() -> None:
    followed = Followed()
    followed.groups.left = {followed.child.pid}
    followed.child.output_closed()

    followed.process.ends(1)
    followed.pass_time(0.2)

    assert followed.groups.killed == [followed.child.pid]
    assert len(followed.endings) == 1


def test_descendants_of_a_child_that_was_asked_to_go_may_finish() -> None:
    followed = Followed()
    followed.groups.left = {followed.child.pid}
    followed.child.terminate()
    followed.child.output_closed()
    followed.process.ends()

    followed.pass_time(6.0)
    assert followed.groups.killed == []
    assert followed.endings == []
    followed.groups.left.clear()
    followed.pass_time(0.4)

    assert len(followed.endings) == 1


def test_a_kill_reaches_those_who_outlived_the_leader() -> None:
    followed = Followed()
    followed.groups.left = {followed.child.pid}
    followed.child.terminate()
    followed.process.ends()

    followed.child.kill()

    assert followed.groups.signals == [(followed.child.pid, "SIGTERM"), (followed.child.pid, "SIGKILL")]


@pytest.mark.parametrize("asked_first", [True, False])
def test_the_rest_is_asked_to_go_once_the_leader_has_gone(asked_first: bool) -> None:
    followed = Followed()
    followed.groups.left = {followed.child.pid}

    if asked_first:
        followed.child.terminate_rest()
        assert followed.groups.signals == []
    followed.process.ends()
    if not asked_first:
        followed.child.terminate_rest()
    assert followed.groups.signals == [(followed.child.pid, "SIGTERM")]
    followed.pass_time(2.0)
    assert followed.endings == []
    followed.groups.left.clear()
    followed.child.output_closed()
    followed.pass_time(0.4)

    assert len(followed.endings) == 1
    assert followed.groups.killed == []


def test_nobody_is_signalled_under_the_number_of_a_child_that_is_gone() -> None:
    followed = Followed()
    followed.child.output_closed()
    followed.process.ends()

    followed.child.terminate()
    followed.reactor.advance(0)
    followed.child.kill()

    assert followed.groups.signals == []


def test_even_what_cannot_be_killed_does_not_hold_up_the_end_for_ever() -> None:
    followed = Followed()
    followed.groups.left = {followed.child.pid}
    followed.groups.stubborn = True
    followed.process.ends()

    followed.pass_time(BACKSTOP + REAPING + 2 * LONGEST_LOOK)

    assert len(followed.endings) == 1
    assert followed.reactor.getDelayedCalls() == []


@pytest.mark.parametrize(
    ("reason", "ending"),
    [
        (ProcessDone(0), Ending("exited with code 0", clean=True)),
        (ProcessTerminated(127, None, 0), Ending("exited with code 127", clean=False)),
        (ProcessTerminated(None, signal.SIGABRT, 0), Ending("was killed by signal 6 (SIGABRT)", clean=False)),
        (ProcessTerminated(None, 40, 0), Ending("was killed by signal 40", clean=False)),
    ],
)
def test_an_end_is_described_in_words(reason: Exception, ending: Ending) -> None:
    assert describe(Failure(reason)) == ending


def test_who_leaves_the_session_is_found_by_looking_now_and_then_and_told_to_go_in_the_end() -> None:
    followed = Followed()
    followed.reactor.advance(FIRST_ROUND)
    assert followed.strays == []
    followed.groups.strays = {7}

    followed.reactor.advance(2 * FIRST_ROUND)
    followed.reactor.advance(4 * FIRST_ROUND)
    assert followed.strays == [7]
    assert followed.groups.told == []

    followed.process.ends(1)
    assert followed.groups.told == [(followed.child.pid, "SIGTERM")]
    followed.child.output_closed()
    followed.reactor.advance(0)
    assert len(followed.endings) == 1
    assert followed.reactor.getDelayedCalls() == []


def test_who_has_left_the_session_is_looked_for_before_the_child_is_told_to_go() -> None:
    """Afterwards he may be a child of nobody that we know."""
    followed = Followed()
    followed.groups.strays = {7}

    followed.child.terminate()

    assert followed.strays == [7]
    assert followed.groups.told == []  # the child may want to tell him itself
    followed.child.kill()
    assert followed.groups.told == [(followed.child.pid, "SIGKILL")]


def test_what_a_command_that_clears_away_has_started_is_let_go() -> None:
    followed = Followed()
    child = ChildProcess(followed.groups, followed.reactor, followed.endings.append)
    process = followed.reactor.spawnProcess(child, "clear", ["clear"])
    followed.groups.strays = {7}

    child.terminate()
    process.ends()
    child.output_closed()
    followed.reactor.advance(0)

    assert followed.groups.found == set()
    assert len(followed.endings) == 1
