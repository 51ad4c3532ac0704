"""What the service manager is told."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from llamaswap.supervision import Supervisor


class Manager:
    """A service manager that listens on a socket."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address)
        self._socket.settimeout(5.0)

    def hears(self) -> list[str]:
        """The lines of the next message."""
        return self._socket.recv(4096).decode().split("\n")

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
    supervisor = Supervisor({"NOTIFY_SOCKET": place})

    supervisor.ready("listening on 127.0.0.1:8080")
    assert manager.hears() == ["READY=1", "STATUS=listening on 127.0.0.1:8080"]
    supervisor.stopping()
    assert manager.hears()[0] == "STOPPING=1"


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}])
def test_without_a_manager_nobody_is_told(environ: dict[str, str]) -> None:
    Supervisor(environ).ready("x")


def test_a_manager_that_cannot_be_reached_stops_nothing(tmp_path: Path) -> None:
    Supervisor({"NOTIFY_SOCKET": str(tmp_path / "nobody")}).ready("x")
    Supervisor({"NOTIFY_SOCKET": "/" + "x" * 300}).stopping()
