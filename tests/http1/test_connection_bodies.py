"""Request bodies that are too large, or too slow."""

from __future__ import annotations

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import capturedLogs

from llamaswap.http1.connection import Limits
from llamaswap.http1.exchange import ClientGone, Exchange
from support.http1_wires import Clients, End

LENGTH = b"POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n"
CHUNKED = b"POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
TOO_LARGE = b"HTTP/1.1 413 "
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\n"


class Reader:
    """A handler that answers with the size of the body, and notes what it had to hold."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.exchanges: list[Exchange] = []
        self.gone = 0
        self.clients = Clients(self._handle, limits=limits)
        self.client = self.clients.connect()

    def pass_time(self, seconds: float) -> None:
        self.clients.clock.advance(seconds)

    async def _handle(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        try:
            body = await exchange.body()
        except ClientGone:
            self.gone += 1
            raise
        exchange.respond(200, b"%d" % body.size)


def is_refused(client: End, line: bytes) -> bool:
    answer = client.take()
    return answer.startswith(line) and b"\r\nConnection: close\r\n" in answer and client.is_closed()


def status(client: End) -> bytes:
    return client.take()[:12]


def test_a_body_that_says_it_is_too_large_is_never_read() -> None:
    reader = Reader(Limits(body_bytes=100))

    reader.client.send(LENGTH % 101)

    assert is_refused(reader.client, TOO_LARGE)
    assert reader.exchanges == []


def test_a_client_that_asks_before_it_sends_is_told_at_once() -> None:
    reader = Reader(Limits(body_bytes=100))

    reader.client.send((LENGTH % 101)[:-2] + b"Expect: 100-continue\r\n\r\n")

    assert is_refused(reader.client, TOO_LARGE)


@pytest.mark.parametrize("body", [LENGTH % 100 + bytes(100), CHUNKED + b"59\r\n%b\r\n0\r\n\r\n" % bytes(89)])
def test_a_body_may_be_as_large_as_the_limit(body: bytes) -> None:
    reader = Reader(Limits(body_bytes=100))

    reader.client.send(body)

    assert status(reader.client) == b"HTTP/1.1 200"


@pytest.mark.parametrize("first", [b"", b"30\r\n%b\r\n" % bytes(48)])
def test_a_body_that_grows_too_large_loses_its_exchange(first: bytes) -> None:
    reader = Reader(Limits(body_bytes=100))
    reader.client.send(CHUNKED + first)
    assert reader.client.take() == b""

    with capturedLogs() as logs:
        reader.client.send(b"40\r\n%b\r\n" % bytes(64), b"40\r\n%b\r\n" % bytes(64))

    assert is_refused(reader.client, TOO_LARGE)
    assert reader.gone == 1
    assert all(exchange.intake.held_bytes <= 100 for exchange in reader.exchanges)
    assert logs == []


def test_chunks_that_are_too_large_from_the_start_make_no_exchange() -> None:
    reader = Reader(Limits(body_bytes=10))

    reader.client.send(CHUNKED + b"40\r\n%b\r\n" % bytes(64))

    assert is_refused(reader.client, TOO_LARGE)
    assert reader.exchanges == []


def test_a_body_that_stalls_is_a_408() -> None:
    reader = Reader()
    reader.client.send(LENGTH % 10)
    reader.pass_time(59)
    reader.client.send(b"a")
    reader.pass_time(59)
    assert reader.client.take() == b""

    with capturedLogs() as logs:
        reader.pass_time(2)

    assert is_refused(reader.client, TOO_SLOW)
    assert (reader.gone, reader.exchanges[0].status) == (1, 408)
    assert logs == []


def test_a_slow_body_that_gets_on_is_waited_for() -> None:
    reader = Reader()
    reader.client.send(LENGTH % 30)

    for _ in range(30):
        reader.pass_time(50)
        reader.client.send(b"a")

    assert status(reader.client) == b"HTTP/1.1 200"
    reader.pass_time(100)
    assert not reader.client.is_closed()


def test_a_body_may_take_any_time_while_it_is_not_read() -> None:
    held: list[Exchange] = []
    go_on: Deferred[None] = Deferred()

    async def handler(exchange: Exchange) -> None:
        held.append(exchange)
        await go_on
        exchange.respond(200, b"%d" % (await exchange.body()).size)

    clients = Clients(handler, limits=Limits(pipeline_bytes=10))
    client = clients.connect()
    client.send(LENGTH % 40, bytes(20))
    assert client.is_paused()

    clients.clock.pump([50.0] * 20)
    assert not client.is_closed()
    go_on.callback(None)
    assert not client.is_paused()
    clients.clock.advance(59)
    client.send(bytes(20))
    assert status(client) == b"HTTP/1.1 200"


def test_a_body_that_is_read_on_may_not_stall_again() -> None:
    go_on: Deferred[None] = Deferred()

    async def handler(exchange: Exchange) -> None:
        await go_on
        await exchange.body()

    clients = Clients(handler, limits=Limits(pipeline_bytes=10))
    client = clients.connect()
    client.send(LENGTH % 40, bytes(20))
    clients.clock.advance(100)
    go_on.callback(None)

    clients.clock.advance(61)

    assert is_refused(client, TOO_SLOW)


def test_a_client_that_waits_for_the_word_is_waited_for_only_once_it_has_it() -> None:
    go_on: Deferred[None] = Deferred()

    async def handler(exchange: Exchange) -> None:
        await go_on
        await exchange.body()

    clients = Clients(handler)
    client = clients.connect()
    client.send((LENGTH % 5)[:-2] + b"Expect: 100-continue\r\n\r\n")
    clients.clock.pump([50.0] * 20)
    assert not client.is_closed()

    go_on.callback(None)
    assert client.take() == b"HTTP/1.1 100 Continue\r\n\r\n"
    clients.clock.advance(61)

    assert is_refused(client, TOO_SLOW)


def test_a_handler_that_waits_for_something_else_is_cancelled_with_the_stalled_body() -> None:
    ends: list[str] = []

    async def handler(exchange: Exchange) -> None:
        try:
            await Deferred()
        except CancelledError:
            ends.append("cancelled")
            raise

    clients = Clients(handler)
    client = clients.connect()
    client.send(LENGTH % 5)

    clients.clock.advance(61)

    assert is_refused(client, TOO_SLOW)
    assert ends == ["cancelled"]


def test_an_answer_that_began_without_the_body_is_not_cut_for_its_sake() -> None:
    held: list[Exchange] = []

    async def handler(exchange: Exchange) -> None:
        held.append(exchange)
        await Deferred()

    clients = Clients(handler)
    client = clients.connect()
    client.send(LENGTH % 5)
    stream = held[0].stream(200)

    clients.clock.pump([50.0] * 20)

    assert not client.is_closed()
    stream.write(b"late")
    assert client.take().endswith(b"4\r\nlate\r\n")
