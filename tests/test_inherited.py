"""Which sockets were left to us, and how they are taken over."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.address import UNIXAddress
from twisted.internet.protocol import Factory, Protocol

from llamaswap.inherited import (
    Inherited,
    NotInherited,
    SocketReactor,
    UnixPort,
    descriptions_of,
    find,
    first_environment,
    is_inherited,
    keep_from_children,
    listen_on,
    sockets_of,
)

TWO = (Inherited(3, "web"), Inherited(4, "other"))


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        ({"LISTEN_FDS": "2", "LISTEN_PID": "7", "LISTEN_FDNAMES": "web:other"}, TWO),
        ({"LISTEN_FDS": "2", "LISTEN_PID": "7"}, (Inherited(3), Inherited(4))),
        ({"LISTEN_FDS": "2", "LISTEN_PID": "7", "LISTEN_FDNAMES": "web"}, (Inherited(3), Inherited(4))),
        ({"LISTEN_FDS": "2", "LISTEN_PID": "8"}, ()),
        ({"LISTEN_FDS": "2"}, ()),
        ({"LISTEN_FDS": "0", "LISTEN_PID": "7"}, ()),
        ({"LISTEN_FDS": "-1", "LISTEN_PID": "7"}, ()),
        ({"LISTEN_FDS": "some", "LISTEN_PID": "7"}, ()),
        ({"LISTEN_FDS": "", "LISTEN_PID": "7"}, ()),
        ({"LISTEN_PID": "7"}, ()),
        ({}, ()),
    ],
)
def test_sockets_are_counted_from_the_third_descriptor_on_and_names_are_optional(
    environ: dict[str, str], found: tuple[Inherited, ...]
) -> None:
    assert tuple(sockets_of(environ, 7)) == found


@given(st.dictionaries(st.sampled_from(["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"]), st.text(max_size=3)))
def test_whatever_the_environment_says_nothing_breaks(environ: dict[str, str]) -> None:
    for place, found in enumerate(sockets_of(environ, 7)):
        assert found.descriptor == 3 + place


@given(st.lists(st.text("abc.-", min_size=1), max_size=4, unique=True))
def test_each_socket_is_found_by_what_it_is_described_as(names: list[str]) -> None:
    sockets = [Inherited(3 + place, name) for place, name in enumerate(names)]

    assert [find(description, sockets) for description in descriptions_of(sockets)] == sockets
    assert [find(f"systemd:domain=INET:name={name}", sockets) for name in names] == sockets
    assert all(map(is_inherited, descriptions_of(sockets)))


@pytest.mark.parametrize(
    "description",
    ["systemd", "systemd:", "systemd:index=2", "systemd:index=-1", "systemd:name=nobody", "systemd:index",
     "systemd:index=0:name=web", "systemd:domain=INET", "systemd:index=0:backlog=3"],
)  # fmt: skip
def test_a_socket_that_is_not_there_is_one_line(description: str) -> None:
    with pytest.raises(NotInherited) as why:
        find(description, TWO)

    assert "\n" not in str(why.value)


def test_a_descriptor_can_be_named_by_its_number() -> None:
    assert find("fd:9", ()) == Inherited(9)
    assert is_inherited("fd:9")
    assert not is_inherited("tcp:9")
    with pytest.raises(ValueError, match="nine"):
        find("fd:nine", ())


def test_the_environment_is_that_of_the_start_whatever_was_taken_out_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = set(os.environ)
    for name in names:
        monkeypatch.delenv(name)

    assert "PATH" in first_environment()


class FakeReactor:
    """Takes notes of what it is to listen on."""

    def __init__(self) -> None:
        self.adopted: list[tuple[socket.AddressFamily, Any]] = []
        self.connections: list[bytes] = []
        self.reading: list[Any] = []

    def adoptStreamPort(self, descriptor: int, family: socket.AddressFamily, factory: object) -> str:
        assert not os.get_blocking(descriptor)
        with socket.socket(fileno=os.dup(descriptor)) as listening:
            self.adopted.append((family, listening.getsockname()))
        return "a port"

    def adoptStreamConnection(self, descriptor: int, family: socket.AddressFamily, factory: object) -> None:
        with socket.socket(fileno=os.dup(descriptor)) as connection:
            self.connections.append(connection.recv(100))

    def addReader(self, reader: object) -> None:
        self.reading.append(reader)

    def removeReader(self, reader: object) -> None:
        self.reading = [other for other in self.reading if other is not reader]

    def removeWriter(self, writer: object) -> None:
        """There is none."""


def taken(listening: socket.socket, reactor: FakeReactor) -> Any:
    """Leave a socket to us, and have it taken over."""
    left = Inherited(os.dup(listening.fileno()))
    return listen_on(left, cast("SocketReactor", reactor), Factory.forProtocol(Protocol))


@pytest.mark.parametrize(
    ("family", "place"), [(socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_INET6, ("::1", 0))]
)
def test_tcp_sockets_of_either_kind_become_twisteds_own_ports(
    family: socket.AddressFamily, place: tuple[str, int]
) -> None:
    reactor = FakeReactor()
    with socket.create_server(place, family=family) as listening:
        assert taken(listening, reactor) == "a port"
        assert reactor.adopted == [(family, listening.getsockname())]


def test_what_was_taken_over_is_not_open_twice() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        left = Inherited(os.dup(listening.fileno()))
        factory = Factory.forProtocol(Protocol)
        listen_on(left, cast("SocketReactor", FakeReactor()), factory)

        with pytest.raises(OSError, match="Bad file descriptor"):
            listen_on(left, cast("SocketReactor", FakeReactor()), factory)


def test_a_socket_that_does_not_listen_is_refused() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as idle, pytest.raises(OSError, match="listening"):
        taken(idle, FakeReactor())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other, pytest.raises(OSError, match="listening"):
        taken(other, FakeReactor())


def test_a_unix_socket_keeps_its_path_and_its_mode_and_stays_open_for_others(tmp_path: Path) -> None:
    path, reactor = tmp_path / "socket", FakeReactor()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()
        path.chmod(0o600)
        port = taken(listening, reactor)
        assert isinstance(port, UnixPort)
        assert reactor.reading == [port]
        assert port.getHost() == UNIXAddress(str(path).encode())

        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(str(path))
            client.sendall(b"hello")
            port.doRead()
        assert reactor.connections == [b"hello"]

        stopped = port.stopListening()
        assert stopped.called
        assert port.stopListening().called
        assert reactor.reading == []
        assert path.stat().st_mode & 0o777 == 0o600
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(str(path))


def test_where_proc_is_missing_the_environment_is_what_it_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_bytes", _fails)

    assert first_environment() is os.environ


def _fails(_path: Path) -> bytes:
    raise OSError


def test_what_was_left_open_to_us_is_not_for_children() -> None:
    left = os.open(os.devnull, os.O_RDONLY)
    try:
        os.set_inheritable(left, True)

        keep_from_children()

        assert not os.get_inheritable(left)
        assert os.get_inheritable(2)
    finally:
        os.close(left)
