"""What the owner of one child hears of it."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.task import Clock
from twisted.logger import capturedLogs

from llamaswap.processes.child import CannotStart
from llamaswap.processes.health import Address
from llamaswap.processes.logbook import Logbook
from llamaswap.processes.run import Run
from support.processes_fakes import FakeChildren, FakeProber, a_model

OWN_PORT = 8080  # where the daemon is thought to listen


class Running:
    """A run among fakes, and what it told."""

    def __init__(self, **changes: Any) -> None:
        self.clock = Clock()
        self.children = FakeChildren()
        self.prober = FakeProber(self.clock)
        self.ready: list[Address] = []
        self.late: list[str] = []
        self.ended: list[str] = []
        self.run = Run(
            a_model(**changes),
            children=self.children,
            clock=self.clock,
            prober=self.prober,
            logbook=Logbook(),
            is_own=lambda address: address.port == OWN_PORT,
            ready=self.ready.append,
            late=self.late.append,
            stuck=lambda: self.late.append("stuck"),
            ended=self.ended.append,
        )


def test_a_life_is_told_from_start_to_end_in_one_line_each() -> None:
    running = Running()

    with capturedLogs() as logged:
        running.run.start()
        running.prober.answers(200)
        running.run.stop(10.0, "asked to stop")
        running.children.latest.exits()

    assert len(running.ready) == 1
    assert running.ended == ["exited with code 0"]
    assert running.run.was_stopped
    assert [event["log_format"].split()[0] for event in logged] == [
        "process.started",
        "process.stopping",
        "process.exited",
    ]


def test_a_crash_is_one_line_with_the_exit_and_the_last_words() -> None:
    running = Running()
    running.run.start()
    running.children.latest.says("first")
    running.children.latest.says("out of memory")

    with capturedLogs() as logged:
        running.children.latest.is_killed("6 (SIGABRT)")

    (event,) = logged
    assert event["how"] == "was killed by signal 6 (SIGABRT)"
    assert event["last"] == "first | out of memory"
    assert not running.run.was_stopped


def test_probing_leaves_no_line_in_the_log() -> None:
    running = Running()
    running.run.start()

    with capturedLogs() as logged:
        for _ in range(50):
            running.prober.answers(None, "refused")
            running.clock.advance(0.1)

    assert len(running.prober.asked) == 51
    assert logged == []


def test_no_probe_is_left_when_the_child_has_gone() -> None:
    running = Running()
    running.run.start()

    running.children.latest.exits(1)

    assert running.prober.questions == 0
    assert running.clock.getDelayedCalls() == []
    assert running.late == []


def test_a_late_child_lives_on_until_its_owner_stops_it() -> None:
    running = Running(health_check_timeout=15)
    running.run.start()

    running.clock.advance(5.0)
    running.clock.advance(0.1)
    running.clock.advance(10.0)

    assert running.late == [
        "health check timed out after 15s: checkEndpoint '/health' did not answer: no answer"
    ]
    assert running.children.latest.signals == []


def test_an_endpoint_that_is_no_path_is_an_error_like_a_late_child() -> None:
    running = Running(check_endpoint="http://[broken")

    running.run.start()

    assert running.late[0].startswith("checkEndpoint 'http://[broken' is not a path")


def test_a_prober_that_breaks_is_reported_as_a_fault_of_the_program() -> None:
    running = Running()
    running.run.start()
    (question,) = running.prober._open

    with capturedLogs() as logged:
        question.errback(ZeroDivisionError("oops"))

    assert running.late == ["oops"]
    assert [event["log_format"] for event in logged] == ["process.probe_failed model={model}"]


def test_what_cannot_be_started_is_raised() -> None:
    running = Running()
    running.children.refusal = "failed to start command 'serve': no program 'serve' in PATH"

    with pytest.raises(CannotStart):
        running.run.start()

    assert running.run.pid is None
    assert running.ended == []


def test_case_030_a_server_that_would_be_the_daemon_itself_is_not_started() -> None:
    running = Running(proxy=f"http://localhost:{OWN_PORT}/v1")

    with pytest.raises(ValueError, match="'http://localhost:8080/v1' is where this daemon itself listens"):
        running.run.start()

    assert running.run.pid is None
    assert running.children.started == []
