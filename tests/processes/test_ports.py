"""Is somebody on our port?"""

from __future__ import annotations

import errno
import socket

import pytest

from llamaswap.processes import ports
from llamaswap.processes.ports import is_taken


def test_a_port_with_a_listener_is_taken_and_free_once_that_is_gone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert is_taken(port)

    assert not is_taken(port)


def test_a_listener_on_every_interface_counts() -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:
        assert is_taken(server.getsockname()[1])


def test_a_connection_that_is_dying_away_does_not_count() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
        accepted.close()  # this side enters TIME_WAIT
        client.close()

    assert not is_taken(port)


@pytest.mark.parametrize("host", ["::1", "::"])
def test_case_105_a_listener_on_the_other_loopback_counts(host: str) -> None:
    with socket.create_server((host, 0), family=socket.AF_INET6) as server:
        assert is_taken(server.getsockname()[1])


def test_a_machine_without_the_other_loopback_has_nothing_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_LOOPBACKS", ((socket.AF_INET6, "2001:db8::1"), (-1, "::1")))

    assert not is_taken(9)


def test_a_process_that_has_used_up_its_descriptors_cannot_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    def used_up(*_: object) -> socket.socket:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(socket, "socket", used_up)

    with pytest.raises(OSError, match="Too many open files"):
        is_taken(9)
