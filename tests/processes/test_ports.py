"""Is somebody on our port?"""

from __future__ import annotations

import socket

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
