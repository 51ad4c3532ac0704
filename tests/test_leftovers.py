"""UNIX sockets whose daemon is gone, and those whose daemon is not."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from llamaswap.leftovers import clear


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A socket that nobody listens on, beside the number of a process that is somebody else's by now."""
    place = tmp_path / "a:b.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(place))
    (tmp_path / "a:b.sock.lock").symlink_to(str(os.getpid()))
    return place


def left_of(place: Path) -> list[str]:
    return sorted(path.name for path in place.parent.iterdir())


@pytest.mark.parametrize("form", ["unix:{}", "unix:{}:mode=660", "unix:address={}:backlog=9"])
def test_a_socket_that_nobody_listens_on_goes_with_its_lock(place: Path, form: str) -> None:
    clear(form.format(str(place).replace(":", r"\:")))

    assert left_of(place) == []


def test_a_lock_whose_socket_has_gone_goes_too(place: Path) -> None:
    place.unlink()

    clear(f"unix:{place}".replace("a:b", r"a\:b"))

    assert left_of(place) == []


def test_a_socket_that_somebody_listens_on_stays(place: Path) -> None:
    place.unlink()
    with socket.socket(socket.AF_UNIX) as heard:
        heard.bind(str(place))
        heard.listen(0)
        for _ in range(3):  # also when no more fit into its queue
            clear(f"unix:{place}".replace("a:b", r"a\:b"))
        assert left_of(place) == ["a:b.sock", "a:b.sock.lock"]


def test_what_is_no_socket_or_has_no_lock_is_left_alone(place: Path) -> None:
    (place.parent / "a:b.sock.lock").unlink()
    clear(f"unix:{place}".replace("a:b", r"a\:b"))
    assert left_of(place) == ["a:b.sock"]

    file = place.parent / "file"
    file.write_text("mine")
    (place.parent / "file.lock").symlink_to("1")
    clear(f"unix:{file}")
    assert left_of(place) == ["a:b.sock", "file", "file.lock"]


@pytest.mark.parametrize("description", ["tcp:80", "unix", "unix:", "ssl:443"])
def test_of_other_endpoints_nothing_is_known(description: str) -> None:
    clear(description)
