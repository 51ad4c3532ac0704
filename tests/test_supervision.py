"""What the service manager is told."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from twisted.internet.task import Clock

from llamaswap.supervision import Supervisor, patience_of


class Manager:
    """A service manager that listens on a socket."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address)
        self._socket.settimeout(5.0)

    def hears(self) -> list[str]:
        """The lines of the next message."""
        return self._socket.recv(4096).decode().split("\n")

    def has_heard_nothing(self) -> bool:
        """Whether no message waits."""
        self._socket.setblocking(False)
        try:
            self._socket.recv(4096)
        except BlockingIOError:
            return True
        finally:
            self._socket.settimeout(5.0)
        return False

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()


@pytest.fixture(params=["file", "abstract"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the manager listens, as NOTIFY_SOCKET names it."""
    return str(tmp_path / "notify") if request.param == "file" else f"@llamaswap-test-{tmp_path}"


@pytest.fixture
def manager(place: str) -> Iterator[Manager]:
    """A manager that listens there."""
    listening = Manager(place.replace("@", "\0", 1) if place.startswith("@") else place)
    yield listening
    listening.close()


def test_the_manager_hears_when_we_serve_and_when_we_stop(manager: Manager, place: str) -> None:
    supervisor = Supervisor({"NOTIFY_SOCKET": place}, Clock())

    supervisor.ready("listening on 127.0.0.1:8080")
    assert manager.hears() == ["READY=1", "STATUS=listening on 127.0.0.1:8080"]
    supervisor.stopping("waiting for 2 running jobs")
    assert manager.hears() == ["STOPPING=1", "STATUS=waiting for 2 running jobs"]
    supervisor.status("nearly over")
    assert manager.hears() == ["STATUS=nearly over"]


def test_a_reload_is_told_with_its_moment_on_the_clock_that_the_manager_has_too(
    manager: Manager, place: str
) -> None:
    clock = Clock()
    clock.advance(12.345678)

    Supervisor({"NOTIFY_SOCKET": place}, clock).reloading()

    assert manager.hears() == ["RELOADING=1", "MONOTONIC_USEC=12345678"]


def test_a_watched_daemon_gives_a_sign_of_life_in_each_half_of_the_managers_patience(
    manager: Manager, place: str
) -> None:
    clock = Clock()
    supervisor = Supervisor({"NOTIFY_SOCKET": place, "WATCHDOG_USEC": "60000000"}, clock)
    assert manager.has_heard_nothing()

    supervisor.begin_signs_of_life()
    assert manager.hears() == ["WATCHDOG=1"]
    clock.advance(29.9)
    assert manager.has_heard_nothing()
    clock.advance(0.1)
    assert manager.hears() == ["WATCHDOG=1"]

    supervisor.end_signs_of_life()
    clock.advance(60.0)
    assert manager.has_heard_nothing()
    assert clock.getDelayedCalls() == []


def test_nobody_is_given_signs_of_life_who_does_not_watch(manager: Manager, place: str) -> None:
    clock = Clock()

    Supervisor({"NOTIFY_SOCKET": place}, clock).begin_signs_of_life()
    Supervisor({"WATCHDOG_USEC": "60000000"}, clock).begin_signs_of_life()

    assert manager.has_heard_nothing()
    assert clock.getDelayedCalls() == []


@pytest.mark.parametrize(
    ("environ", "patience"),
    [
        ({"WATCHDOG_USEC": "1500000"}, 1.5),
        ({"WATCHDOG_USEC": "1500000", "WATCHDOG_PID": "7"}, 1.5),
        ({"WATCHDOG_USEC": "1500000", "WATCHDOG_PID": "8"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "-1"}, None),
        ({"WATCHDOG_USEC": "\u0663"}, None),
        ({}, None),
    ],
)
def test_the_managers_patience_is_what_was_meant_for_this_process(
    environ: dict[str, str], patience: float | None
) -> None:
    assert patience_of(environ, 7) == patience


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}])
def test_without_a_manager_nobody_is_told(environ: dict[str, str]) -> None:
    Supervisor(environ, Clock()).ready("x")


def test_a_manager_that_cannot_be_reached_stops_nothing(tmp_path: Path) -> None:
    Supervisor({"NOTIFY_SOCKET": str(tmp_path / "nobody")}, Clock()).ready("x")
    Supervisor({"NOTIFY_SOCKET": "/" + "x" * 300}, Clock()).stopping("y")
