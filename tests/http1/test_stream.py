"""Responses written bit by bit."""

from __future__ import annotations

from llamaswap.http1.exchange import Exchange
from llamaswap.http1.stream import ResponseStream
from support.http1_wires import TODAY, Clients, End

HEAD = b"HTTP/1.1 200 OK\r\nA: b\r\n%bDate: " + TODAY.encode() + b"\r\n%b\r\n"


def begin(request: bytes) -> tuple[ResponseStream, Exchange, End]:
    seen: list[tuple[ResponseStream, Exchange]] = []

    async def handler(exchange: Exchange) -> None:
        seen.append((exchange.stream(200, [(b"A", b"b")]), exchange))

    client = Clients(handler).connect()
    client.send(request)
    return (*seen[0], client)


def test_a_stream_outlives_its_handler_and_is_chunked() -> None:
    stream, exchange, client = begin(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    assert client.take() == HEAD % (b"Transfer-Encoding: chunked\r\n", b"")

    stream.write(b"hello, world")
    stream.write(b"")
    assert client.take() == b"c\r\nhello, world\r\n"

    stream.finish()
    stream.write(b"too late")
    stream.finish()
    stream.abort()
    assert client.take() == b"0\r\n\r\n"
    assert not client.is_closed()
    assert exchange.body_bytes == len(b"hello, world")


def test_an_old_client_gets_the_bytes_and_the_end_of_the_connection() -> None:
    stream, _, client = begin(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")

    stream.write(b"hello")
    stream.finish()

    assert client.take() == HEAD % (b"", b"Connection: close\r\n") + b"hello"
    assert client.is_closed()


def test_head_gets_no_bytes_of_the_stream() -> None:
    stream, exchange, client = begin(b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")

    stream.write(b"hello")
    stream.finish()

    assert client.take() == HEAD % (b"Transfer-Encoding: chunked\r\n", b"")
    assert not client.is_closed()
    assert exchange.body_bytes == 0


def test_a_client_that_leaves_ends_the_stream_quietly() -> None:
    stream, exchange, client = begin(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    left: list[str] = []
    exchange.when_gone(lambda: left.append("left"))

    client.leave()
    stream.write(b"hello")
    stream.finish()

    assert left == ["left"]


def test_what_the_client_has_not_taken_is_counted() -> None:
    stream, _, client = begin(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")

    client.stall()
    stream.write(b"hello")
    assert stream.buffered == len(b"5\r\nhello\r\n")

    client.go_on()
    assert stream.buffered == 0


def test_an_aborted_stream_has_no_proper_end() -> None:
    stream, _, client = begin(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    client.take()

    stream.abort()

    assert client.is_aborted()
    assert client.take() == b""
