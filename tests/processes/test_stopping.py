"""How one child is brought to its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from twisted.internet.task import Clock
from twisted.logger import LogEvent, capturedLogs, formatEvent

from llamaswap.processes.child import Order
from llamaswap.processes.stopping import OUTLIVED, STUCK, Stopping
from support.processes_fakes import FakeChild, FakeChildren, a_model


class Farewell:
    """A stop among fakes."""

    def __init__(self, **changes: Any) -> None:
        self.clock = Clock()
        self.children = FakeChildren()
        self.output: list[bytes] = []
        self.over = self.stuck = 0
        self.child: FakeChild = self.children.spawn(
            Order(("serve",)), self.output.append, lambda _ending: self.stopping.child_ended()
        )
        self.stopping = Stopping(
            a_model(**changes),
            self.child,
            children=self.children,
            clock=self.clock,
            output=self.output.append,
            stuck=self._stuck,
            over=self._over,
        )

    @property
    def command(self) -> FakeChild:
        """The `cmdStop` that was run."""
        assert len(self.children.started) == 2
        return self.children.latest

    def _over(self) -> None:
        self.over += 1

    def _stuck(self) -> None:
        self.stuck += 1


@pytest.fixture
def logged() -> Iterator[Sequence[LogEvent]]:
    with capturedLogs() as events:
        yield events


def test_without_a_command_the_child_is_asked_then_killed() -> None:
    farewell = Farewell()
    farewell.stopping.begin(10.0)
    assert farewell.child.signals == ["TERM"]

    farewell.clock.advance(10.0)
    assert farewell.child.signals == ["TERM", "KILL"]
    farewell.child.is_killed()

    assert farewell.over == 1
    assert farewell.clock.getDelayedCalls() == []


def test_a_child_that_needs_part_of_its_grace_is_not_killed() -> None:
    farewell = Farewell()
    farewell.stopping.begin(30.0)

    farewell.clock.advance(6.0)
    farewell.child.exits()

    assert farewell.child.signals == ["TERM"]
    assert farewell.over == 1
    assert farewell.clock.getDelayedCalls() == []


def test_the_command_gets_the_pid_and_runs_in_place_of_the_signal() -> None:
    farewell = Farewell(cmd_stop="docker stop 'a b' --pid ${PID} # ${PID}", env=("A=1",))

    farewell.stopping.begin(10.0)

    pid = str(farewell.child.pid)
    words = ("docker", "stop", "a b", "--pid", pid, "#", pid)
    assert farewell.command.order == Order(words, ("A=1",), detaches=True)
    assert farewell.child.signals == []


def test_what_the_command_prints_goes_to_the_models_log() -> None:
    farewell = Farewell(cmd_stop="stop it")
    farewell.stopping.begin(10.0)

    farewell.command.says("stopped")

    assert farewell.output == [b"stopped\n"]


def test_it_is_over_only_when_both_the_child_and_the_command_have_gone() -> None:
    farewell = Farewell(cmd_stop="stop it")
    farewell.stopping.begin(10.0)

    farewell.child.exits()
    assert farewell.over == 0
    farewell.command.exits()

    assert farewell.over == 1
    assert farewell.clock.getDelayedCalls() == []


@pytest.mark.parametrize("code", [0, 1])
def test_a_command_that_succeeds_may_have_told_only_a_wrapper_so_the_rest_is_asked(code: int) -> None:
    farewell = Farewell(cmd_stop="stop it")
    farewell.stopping.begin(10.0)

    farewell.command.exits(code)

    assert (farewell.child.rest_asked, farewell.child.signals) == ((code == 0), [] if code == 0 else ["TERM"])


def test_a_command_that_succeeds_leaves_the_child_its_grace() -> None:
    farewell = Farewell(cmd_stop="stop it")
    farewell.stopping.begin(10.0)
    farewell.command.exits(0)

    farewell.clock.advance(9.9)
    assert farewell.child.signals == []
    farewell.clock.advance(0.1)

    assert farewell.child.signals == ["KILL"]


def test_a_command_that_fails_is_followed_by_the_signal_and_logged_once(logged: Sequence[LogEvent]) -> None:
    farewell = Farewell(cmd_stop="false")
    farewell.stopping.begin(2.0)

    farewell.command.exits(1)
    assert farewell.child.signals == ["TERM"]
    farewell.clock.advance(2.0)

    assert farewell.child.signals == ["TERM", "KILL"]
    assert [event["why"] for event in logged] == ["exited with code 1"]


def test_a_command_that_does_not_exist_is_replaced_by_the_signal(logged: Sequence[LogEvent]) -> None:
    farewell = Farewell(cmd_stop="no-such-thing")
    farewell.children.refusal = "failed to start command 'no-such-thing': no program 'no-such-thing' in PATH"

    farewell.stopping.begin(2.0)

    assert farewell.child.signals == ["TERM"]
    assert [event["why"] for event in logged] == [farewell.children.refusal]


@pytest.mark.parametrize("command", ["", "  \n", "# only a comment"])
def test_an_empty_command_is_none(command: str) -> None:
    farewell = Farewell(cmd_stop=command)

    farewell.stopping.begin(2.0)

    assert farewell.child.signals == ["TERM"]


def test_a_command_that_hangs_gets_help_and_is_killed_with_the_child(logged: Sequence[LogEvent]) -> None:
    farewell = Farewell(cmd_stop="sleep 1000")
    farewell.stopping.begin(10.0)

    farewell.clock.advance(8.0)
    assert farewell.child.signals == ["TERM"]
    farewell.clock.advance(2.0)
    assert farewell.child.signals == ["TERM", "KILL"]
    assert farewell.command.signals == ["KILL"]
    farewell.command.is_killed()
    farewell.child.is_killed()

    assert farewell.over == 1
    assert len(logged) == 1


def test_a_stop_can_be_shortened_and_never_prolonged() -> None:
    farewell = Farewell()
    farewell.stopping.begin(10.0)

    farewell.stopping.hasten(3.0)
    farewell.stopping.hasten(60.0)
    farewell.clock.advance(3.0)

    assert farewell.child.signals == ["TERM", "KILL"]


def test_a_child_that_outlives_its_killing_is_told_of_once(logged: Sequence[LogEvent]) -> None:
    farewell = Farewell()
    farewell.stopping.begin(1.0)
    farewell.clock.advance(1.0)
    farewell.clock.advance(OUTLIVED - 0.1)
    assert logged == []

    farewell.clock.advance(100.0)

    (line,) = map(formatEvent, logged)
    assert line == f"process.outlives_kill model=m pid={farewell.child.pid} seconds=10"
    farewell.child.is_killed()
    assert farewell.over == 1
    assert farewell.clock.getDelayedCalls() == []


@pytest.mark.parametrize("what", ["child", "command"])
def test_an_end_that_does_not_come_a_minute_after_the_killing_is_told_of_once(what: str) -> None:
    farewell = Farewell(cmd_stop="stop it")
    farewell.stopping.begin(1.0)
    farewell.clock.advance(1.0)
    stays, goes = (
        (farewell.child, farewell.command) if what == "child" else (farewell.command, farewell.child)
    )
    goes.is_killed()

    farewell.clock.advance(STUCK - 0.1)
    assert farewell.stuck == 0
    farewell.clock.advance(0.1)
    farewell.clock.advance(1000.0)

    assert (farewell.stuck, farewell.over) == (1, 0)
    stays.is_killed()
    assert (farewell.stuck, farewell.over) == (1, 1)
    assert farewell.clock.getDelayedCalls() == []


def test_an_end_that_comes_late_is_not_said_not_to_come() -> None:
    farewell = Farewell()
    farewell.stopping.begin(1.0)
    farewell.clock.advance(1.0)
    farewell.clock.advance(STUCK - 0.1)

    farewell.child.is_killed()

    assert (farewell.stuck, farewell.over) == (0, 1)
    assert farewell.clock.getDelayedCalls() == []
