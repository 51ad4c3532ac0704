"""Requests as they are read, and clients as they leave."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Iterator

import pytest

from llamaswap.stub.wire import Left, Request, Wire

Pair = tuple[socket.socket, Wire]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """A client's socket, and the stub's end of its connection."""
    client, connection = socket.socketpair()
    client.settimeout(5.0)
    wire = Wire(connection)
    yield client, wire
    wire.close()
    client.close()


def test_a_request_is_read_with_its_fields_as_they_came(pair: Pair) -> None:
    client, wire = pair
    client.sendall(b"POST /a?b=1 HTTP/1.1\r\nHOST: x\r\nContent-length:  3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n")

    request = wire.read()

    assert (request.method, request.target, request.path, request.body) == ("POST", "/a?b=1", "/a", b"abc")
    assert request.headers == (("HOST", "x"), ("Content-length", "3"))
    assert request.get("host") == "x"
    assert wire.read().method == "GET"


def test_chunks_are_put_together_and_trailers_passed_over(pair: Pair) -> None:
    client, wire = pair
    client.sendall(
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: 1\r\n\r\n"
    )

    assert wire.read().body == b"abcde"


def test_who_expects_to_be_asked_for_a_body_is_asked(pair: Pair) -> None:
    client, wire = pair
    client.sendall(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n")

    wire.read()

    assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"


def test_a_client_that_closes_ends_a_rest(pair: Pair) -> None:
    client, wire = pair
    client.close()

    with pytest.raises(Left):
        wire.rest(30.0)
    with pytest.raises(Left):
        wire.read()


def test_a_client_that_closes_only_its_own_side_has_left(pair: Pair) -> None:
    client, wire = pair
    client.shutdown(socket.SHUT_WR)

    with pytest.raises(Left):
        wire.rest(None)


def test_a_client_that_has_sent_its_next_request_has_not_left(pair: Pair) -> None:
    client, wire = pair
    client.sendall(b"GET / HTTP/1.1\r\n\r\n")

    wire.rest(0.001)
    wire.look()

    assert wire.read().target == "/"


@pytest.mark.parametrize(
    ("protocol", "connection", "stays"),
    [
        ("HTTP/1.1", "", True),
        ("HTTP/1.1", "close", False),
        ("HTTP/1.0", "", False),
        ("HTTP/1.0", "Keep-Alive", True),
    ],
)
def test_a_connection_stays_as_its_protocol_has_it(protocol: str, connection: str, stays: bool) -> None:
    request = Request(
        method="GET", target="/", protocol=protocol, headers=(("Connection", connection),), body=b""
    )

    assert request.stays is stays


def test_a_packed_body_can_be_read() -> None:
    packed = gzip.compress(b"{}")
    fields = (("Content-Encoding", "gzip"),)
    request = Request(method="POST", target="/", protocol="HTTP/1.1", headers=fields, body=packed)

    assert (request.plain, request.body) == (b"{}", packed)
