"""Request bodies that are too large, or too slow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import capturedLogs

from llamaswap.http1.body import Room
from llamaswap.http1.exchange import ClientGone, Exchange
from llamaswap.http1.hosting import Limits
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


def room_for(reader: Reader, size: int) -> Room:
    """Let all bodies hold so much together."""
    room = reader.clients.factory.room
    room.most = size
    return room


NO_ROOM = b"HTTP/1.1 503 Service Unavailable\r\n"


@pytest.mark.parametrize("body", [b"", bytes(30)])
def test_a_body_for_which_there_is_no_room_is_refused_before_it_comes(body: bytes) -> None:
    reader = Reader()
    room = room_for(reader, 100)
    reader.client.send(LENGTH % 80, bytes(79))
    other = reader.clients.connect()

    other.send(LENGTH % 30 + body)

    assert is_refused(other, NO_ROOM)
    assert (room.held, len(reader.exchanges)) == (79, 1)


def test_of_two_that_grow_at_the_same_time_the_one_that_finds_no_room_makes_some() -> None:
    reader = Reader()
    room = room_for(reader, 100)
    one, other = reader.client, reader.clients.connect()
    one.send(LENGTH % 80)
    other.send(LENGTH % 80)
    one.send(bytes(50))
    other.send(bytes(40))

    with capturedLogs() as logs:
        other.send(bytes(20))
    assert is_refused(other, NO_ROOM)
    assert (room.held, reader.gone, logs) == (50, 1, [])

    one.send(bytes(30))
    assert status(one) == b"HTTP/1.1 200"
    assert room.held == 0


@pytest.mark.parametrize("way", ["leave", "reset"])
def test_the_room_of_a_client_that_leaves_is_free(way: str) -> None:
    reader = Reader()
    room = room_for(reader, 100)
    reader.client.send(LENGTH % 80, bytes(50))
    assert room.held == 50

    getattr(reader.client, way)()

    assert room.held == 0


def test_the_room_of_a_request_is_free_when_its_answer_is_over_and_not_before() -> None:
    held: list[Exchange] = []

    async def handler(exchange: Exchange) -> None:
        await exchange.body()
        held.append(exchange)
        await Deferred()

    clients = Clients(handler)
    client = clients.connect()
    client.send(LENGTH % 5 + b"12345")
    stream = held[0].stream(200)
    stream.write(b"x")
    assert clients.factory.room.held == 5

    stream.finish()

    assert clients.factory.room.held == 0
    client.send(LENGTH % 3 + b"123")
    assert clients.factory.room.held == 3


def test_the_room_of_a_body_that_stalls_or_is_broken_is_free() -> None:
    reader = Reader()
    room = room_for(reader, 100)
    reader.client.send(CHUNKED + b"5\r\n12345\r\n")
    other = reader.clients.connect()
    other.send(LENGTH % 10 + b"123")
    assert room.held == 13

    reader.client.send(b"no chunk\r\n")
    assert room.held == 3
    reader.pass_time(61)

    assert room.held == 0


SENT = {
    "half": LENGTH % 20 + bytes(10),
    "more": bytes(10),
    "whole": LENGTH % 20 + bytes(20),
    "two": (LENGTH % 20 + bytes(20)) * 2,
    "chunks": CHUNKED + b"8\r\n%b\r\n" % bytes(8),
    "end of chunks": b"0\r\n\r\n",
    "nonsense": b"no chunk, and no head\r\n\r\n",
    "nothing to it": b"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
}
STEPS = st.tuples(
    st.sampled_from([*SENT, "leaves", "resets", "is answered", "is cut", "time"]), st.integers(0, 2)
)


@given(st.lists(STEPS, max_size=25))
def test_whatever_clients_do_what_their_bodies_hold_is_counted_and_given_back(
    steps: list[tuple[str, int]],
) -> None:
    held: list[Exchange] = []

    async def handler(exchange: Exchange) -> None:
        held.append(exchange)
        await exchange.body()
        await Deferred()

    def under_way() -> list[Exchange]:
        return [exchange for exchange in held if not exchange.gone and not exchange.finished]

    clients = Clients(handler)
    room = clients.factory.room
    room.most = 70
    ends = [clients.connect() for _ in range(3)]
    for step, which in steps:
        open_now = under_way()
        if step == "time":
            clients.clock.advance(61)
        elif step == "is answered" and open_now:
            open_now[which % len(open_now)].respond(200)
        elif step == "is cut" and open_now:
            open_now[which % len(open_now)].abort()
        elif not ends[which].is_closed() and step in SENT:
            ends[which].send(SENT[step])
        elif not ends[which].is_closed() and step in ("leaves", "resets"):
            (ends[which].leave if step == "leaves" else ends[which].reset)()
        clients.clock.advance(0)
        assert room.held == sum(exchange.intake.held_bytes for exchange in under_way()) <= room.most

    for end in ends:
        if not end.is_closed():
            end.reset()
    clients.clock.advance(0)
    assert room.held == 0
