"""What signals mean, and when."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from llamaswap import signalling
from llamaswap.signalling import SAME_WISH, Signals, is_terminal_gone

LATER = SAME_WISH + 0.1


class FakeReactor:
    """Takes notes of what it is told, and calls what it was given when the test says so."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.now = 100.0
        self._queue: list[Callable[[], object]] = []
        self._at: dict[str, Callable[[], object]] = {}

    def seconds(self) -> float:
        return self.now

    def callFromThread(self, call: Callable[..., Any], *args: object) -> None:
        self._queue.append(lambda: call(*args))

    def callWhenRunning(self, call: Callable[..., Any]) -> None:
        self._at["running"] = call

    def addSystemEventTrigger(self, phase: str, event: str, call: Callable[..., Any]) -> None:
        self._at[f"{phase} {event}"] = call

    def sigInt(self, number: int) -> None:
        self.told.append(f"stop by {number}")

    def sigTerm(self, number: int) -> None:
        self.told.append(f"stop by {number}")

    def runs(self) -> None:
        """It begins to run, as Twisted's does: with handlers of its own."""
        signal.signal(signal.SIGTERM, lambda *_: self.told.append("nobody of ours"))
        self._at["running"]()

    def begins_to_stop(self) -> None:
        """Somebody stops it."""
        self._at["before shutdown"]()

    def turn(self) -> None:
        """Do what was left for its next turn."""
        queue, self._queue = self._queue, []
        for call in queue:
            call()


class Process:
    """This process, whose signals are heeded."""

    def __init__(self) -> None:
        self.reactor = FakeReactor()
        told = self.reactor.told
        self.signals = Signals(
            self.reactor, hurry=lambda: told.append("hurry"), reload=lambda: told.append("reload")
        )
        self.signals.heed()

    def gets(self, signum: signal.Signals, after: float = LATER) -> list[str]:
        """Send it a signal and let a turn pass; returns all that has happened so far."""
        self.reactor.now += after
        signal.raise_signal(signum)
        self.reactor.turn()
        return self.reactor.told


@pytest.fixture(autouse=True)
def the_process_is_left_as_it_was() -> Iterator[None]:
    """Every signal gets its meaning back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether there is a terminal: the last entry."""
    there = [True]
    monkeypatch.setattr(signalling, "is_terminal_gone", lambda: not there[-1])
    return there


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_stops_and_further_ones_hurry(signum: signal.Signals) -> None:
    process = Process()
    process.reactor.runs()

    assert process.gets(signum) == [f"stop by {int(signum)}"]
    assert process.gets(signal.SIGINT)[1:] == ["hurry"]
    assert process.gets(signal.SIGTERM)[1:] == ["hurry", "hurry"]


def test_hang_ups_that_come_before_a_reload_has_begun_are_one_and_later_ones_another(
    terminal: list[bool],
) -> None:
    process = Process()
    process.reactor.runs()
    for _ in range(50):
        signal.raise_signal(signal.SIGHUP)

    assert process.gets(signal.SIGHUP) == ["reload"]
    assert process.gets(signal.SIGHUP) == ["reload", "reload"]


def test_a_hang_up_during_a_reload_is_followed_by_another_reload(terminal: list[bool]) -> None:
    """The configuration may have been read before it changed once more."""
    reactor = FakeReactor()
    told: list[str] = []

    def reload() -> None:
        told.append("reload")
        if len(told) == 1:
            signal.raise_signal(signal.SIGHUP)

    Signals(reactor, hurry=lambda: None, reload=reload).heed()
    reactor.runs()
    signal.raise_signal(signal.SIGHUP)

    for _ in range(3):
        reactor.turn()

    assert told == ["reload", "reload"]


def test_the_echo_of_a_signal_is_no_second_one() -> None:
    process = Process()
    process.reactor.runs()

    process.gets(signal.SIGTERM)
    process.gets(signal.SIGTERM, after=SAME_WISH / 3)
    process.gets(signal.SIGINT, after=SAME_WISH / 3)

    assert process.reactor.told == ["stop by 15"]
    # Whoever knocks again and again is heard nevertheless.
    assert process.gets(signal.SIGTERM, after=SAME_WISH / 2) == ["stop by 15", "hurry"]


def test_a_signal_before_the_reactor_runs_is_not_lost() -> None:
    process = Process()

    assert process.gets(signal.SIGTERM) == ["stop by 15"]
    process.reactor.runs()
    assert process.gets(signal.SIGTERM) == ["stop by 15", "hurry"]


def test_a_stop_that_no_signal_began_is_hurried_by_the_first_one() -> None:
    process = Process()
    process.reactor.runs()

    process.reactor.begins_to_stop()

    assert process.gets(signal.SIGTERM) == ["hurry"]


def test_a_signal_is_acted_on_in_a_turn_of_the_reactor() -> None:
    process = Process()

    signal.raise_signal(signal.SIGHUP)

    assert process.reactor.told == []
    process.reactor.turn()
    assert process.reactor.told == ["reload"]


def test_with_its_terminal_alive_a_hang_up_means_a_reload(terminal: list[bool]) -> None:
    process = Process()
    process.reactor.runs()

    assert process.gets(signal.SIGHUP) == ["reload"]


def test_when_its_terminal_was_closed_the_daemon_goes_too_and_in_no_hurry(terminal: list[bool]) -> None:
    process = Process()
    process.reactor.runs()

    terminal.append(False)

    assert process.gets(signal.SIGHUP) == ["stop by 1"]
    assert process.gets(signal.SIGHUP) == ["stop by 1"]
    assert process.gets(signal.SIGINT) == ["stop by 1", "hurry"]


@pytest.mark.parametrize("goes_into_the_background", [False, True])
def test_without_a_terminal_from_the_start_a_hang_up_means_a_reload(
    terminal: list[bool], goes_into_the_background: bool
) -> None:
    terminal.append(goes_into_the_background)
    process = Process()
    terminal.append(False)
    process.reactor.runs()

    assert process.gets(signal.SIGHUP) == ["reload"]


def test_under_nohup_the_terminal_may_go(terminal: list[bool]) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    process = Process()
    process.reactor.runs()

    terminal.append(False)

    assert process.gets(signal.SIGHUP) == ["reload"]


LOOK = """
import os, sys

from llamaswap.signalling import is_terminal_gone

os.setsid()
assert is_terminal_gone()
os.open(sys.argv[1], os.O_RDWR)  # the first terminal that a session's leader opens is its own
assert not is_terminal_gone()
"""


def test_a_session_has_a_terminal_once_its_leader_has_opened_one() -> None:
    master, slave = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", LOOK, os.ttyname(slave)], capture_output=True, timeout=30, check=False
        )
    finally:
        os.close(slave)
        os.close(master)

    assert done.stderr == b""
    assert done.returncode == 0


def test_a_terminal_that_cannot_be_opened_for_another_reason_is_not_gone(tmp_path: object) -> None:
    assert is_terminal_gone("/dev/null/nothing") is False
    assert is_terminal_gone("/dev/null") is False
    assert is_terminal_gone(f"{tmp_path}/nothing") is True
