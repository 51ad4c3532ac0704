"""One client connection: requests in, in order, and every way it can end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import LogLevel, capturedLogs

from llamaswap.http1.exchange import ClientGone, Exchange
from llamaswap.http1.hosting import Limits
from support.http1_wires import TODAY, Clients, End, Running, split

GET = b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n"
POST = b"POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: u\r\n\r\n"
)


def answer(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nDate: %b\r\n\r\n%b" % (len(body), TODAY.encode(), body)


async def echo(exchange: Exchange) -> None:
    body = await exchange.body()
    exchange.respond(200, b"%b %b %b" % (exchange.head.method, exchange.head.target, body.decoded))


class Desk:
    """A handler that leaves every exchange waiting, and notes what becomes of it."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.waiting: list[Deferred[None]] = []
        self.ends: list[str] = []

    async def __call__(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        self.waiting.append(Deferred())
        try:
            await self.waiting[-1]
        except CancelledError:
            self.ends.append("cancelled")
            raise
        self.ends.append("done")


def test_a_request_is_answered_and_the_connection_kept() -> None:
    clients = Clients(echo)
    client = clients.connect()

    client.send(POST)
    assert client.take() == answer(b"POST /p hello")
    client.send(GET % 1)
    assert client.take() == answer(b"GET /1 ")
    assert not client.is_closed()


@given(st.lists(st.integers(0, 400), max_size=15))
def test_any_split_of_the_same_bytes_gives_the_same_requests(cuts: list[int]) -> None:
    client = Clients(echo).connect()

    client.send(*split(GET % 1 + POST + b"\r\n" + CHUNKED + POST + GET % 2, cuts))

    assert client.take() == b"".join(
        answer(body) for body in (b"GET /1 ", b"POST /p hello", b"POST /c abc", b"POST /p hello", b"GET /2 ")
    )


def test_pipelined_requests_are_answered_one_after_the_other() -> None:
    desk = Desk()
    client = Clients(desk).connect()

    client.send(GET % 1 + GET % 2, GET % 3)
    assert [exchange.head.target for exchange in desk.exchanges] == [b"/1"]

    desk.exchanges[0].respond(200, b"one")
    assert client.take() == answer(b"one")
    assert [exchange.head.target for exchange in desk.exchanges] == [b"/1", b"/2"]

    desk.exchanges[1].respond(200, b"two")
    desk.exchanges[2].respond(200, b"three")
    assert client.take() == answer(b"two") + answer(b"three")


def test_a_thousand_pipelined_requests_are_not_answered_a_thousand_calls_deep() -> None:
    client = Clients(echo, limits=Limits(pipeline_bytes=1 << 20)).connect()

    client.send(b"".join(GET % n for n in range(2000)))

    assert client.take().count(b"HTTP/1.1 200 OK") == 2000


def test_the_next_request_waits_until_the_client_has_taken_the_last_answer() -> None:
    desk = Desk()
    client = Clients(desk).connect()
    client.send(GET % 1 + GET % 2)

    client.stall()
    desk.exchanges[0].respond(200, b"one")
    assert len(desk.exchanges) == 1
    client.send(GET % 3)

    client.go_on()
    assert client.take() == answer(b"one")
    desk.exchanges[1].respond(200)
    assert [exchange.head.target for exchange in desk.exchanges] == [b"/1", b"/2", b"/3"]


def test_too_much_sent_ahead_pauses_reading_until_it_is_worked_off() -> None:
    desk = Desk()
    client = Clients(desk, limits=Limits(pipeline_bytes=50)).connect()
    client.send(GET % 1, GET % 2)
    assert not client.is_paused()

    client.send(GET % 3)
    assert client.is_paused()

    desk.exchanges[0].respond(200)
    assert not client.is_paused()


def test_a_body_nobody_asks_for_is_read_to_a_bound() -> None:
    desk = Desk()
    client = Clients(desk, limits=Limits(pipeline_bytes=50)).connect()

    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n" + b"a" * 20)
    assert not client.is_paused()
    client.send(b"a" * 40)
    assert client.is_paused()

    waiting = Running(desk.exchanges[0].body())
    assert not client.is_paused()
    client.send(b"a" * 940)
    assert waiting.result().size == 1000


@pytest.mark.parametrize("leave", [End.leave, End.reset])
def test_a_client_that_leaves_cancels_its_handler_in_the_same_turn(leave: object) -> None:
    desk = Desk()
    clients = Clients(desk)
    client = clients.connect()
    client.send(GET % 1 + GET % 2)
    noted: list[str] = []
    desk.exchanges[0].when_gone(lambda: noted.append("gone"))

    with capturedLogs() as logs:
        assert callable(leave)
        leave(client)

    assert (desk.ends, noted) == (["cancelled"], ["gone"])
    assert desk.exchanges[0].gone
    assert len(desk.exchanges) == 1
    assert logs == []
    assert clients.factory.connections == 0
    assert clients.clock.getDelayedCalls() == []


def test_a_client_that_leaves_in_the_middle_of_its_body_ends_the_wait_for_it() -> None:
    ends: list[str] = []

    async def handler(exchange: Exchange) -> None:
        try:
            await exchange.body()
        except ClientGone:
            ends.append("gone")
            raise

    client = Clients(handler).connect()
    client.send(POST[:-2])
    with capturedLogs() as logs:
        client.leave()

    assert ends == ["gone"]
    assert logs == []


def test_a_handler_that_has_answered_is_not_cancelled_any_more() -> None:
    desk = Desk()
    client = Clients(desk).connect()
    client.send(GET % 1)
    desk.exchanges[0].respond(200)

    client.leave()
    desk.waiting[0].callback(None)

    assert desk.ends == ["done"]
    assert not desk.exchanges[0].gone


def test_a_handler_that_answers_nothing_is_a_500() -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.body()

    client = Clients(handler).connect()
    with capturedLogs() as logs:
        client.send(GET % 1)

    assert client.take().startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert [log["log_level"] for log in logs] == [LogLevel.error]
    assert not client.is_closed()


def test_a_handler_that_fails_is_logged_and_a_500() -> None:
    async def handler(exchange: Exchange) -> None:
        raise LookupError("no such thing")

    client = Clients(handler).connect()
    with capturedLogs() as logs:
        client.send(GET % 1)

    assert client.take().startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert [log["log_format"].split()[0] for log in logs] == ["http.handler_failed"]
    assert logs[0]["log_failure"].check(LookupError)


def test_a_handler_that_fails_in_the_middle_of_its_answer_cuts_the_connection() -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.stream(200).write(b"half")
        raise LookupError

    client = Clients(handler).connect()
    with capturedLogs():
        client.send(GET % 1)

    assert client.is_aborted()
    assert not client.take().endswith(b"0\r\n\r\n")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\nHost: h\n\n", 400),
        (b"\x16\x03\x01\x00\xf8", 400),
        (b"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505),
        (b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"a" * 70000, 431),
        (b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"a" * 70000 + b"\r\n\r\n", 431),
        (CHUNKED[: CHUNKED.index(b"3;x")] + b"zz\r\n", 400),
    ],
)
def test_what_is_not_http_is_refused_and_the_connection_closed(data: bytes, status: int) -> None:
    client = Clients(echo).connect()

    client.send(data)

    head, _, body = client.take().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert b"Connection: close" in head
    assert b"Content-Type: text/plain; charset=utf-8" in head
    assert body.endswith(b"\n")
    assert client.is_closed()


def test_requests_behind_a_broken_one_are_not_served() -> None:
    client = Clients(echo).connect()

    client.send(GET % 1 + b"GET / HTTP/1.1\r\n\r\n" + GET % 2, GET % 3)

    assert client.take().count(b"HTTP/1.1") == 2


@pytest.mark.parametrize("asked", [True, False])
def test_broken_chunks_end_the_exchange_with_a_400(asked: bool) -> None:
    desk = Desk()
    client = Clients(echo if asked else desk).connect()
    client.send(CHUNKED[:-12])
    assert client.take() == b""

    with capturedLogs() as logs:
        client.send(b"abcX")

    assert client.take().startswith(b"HTTP/1.1 400 ")
    assert client.is_closed()
    assert desk.ends == ([] if asked else ["cancelled"])
    assert logs == []


def test_broken_chunks_behind_a_begun_answer_cut_the_connection() -> None:
    desk = Desk()
    client = Clients(desk).connect()
    client.send(CHUNKED[:-12])
    desk.exchanges[0].stream(200)
    client.take()

    client.send(b"abcX")

    assert client.take() == b""
    assert client.is_aborted()


def test_a_head_that_takes_too_long_is_a_408() -> None:
    clients = Clients(echo)
    client = clients.connect()
    clients.clock.advance(100)
    client.send(b"GET / HT")

    clients.clock.advance(20)
    client.send(b"TP/1.1\r\n")
    clients.clock.advance(9.9)
    assert client.take() == b""

    clients.clock.advance(0.2)
    assert client.take().startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert client.is_closed()


@pytest.mark.parametrize("before", [b"", b"\r\n", GET % 1])
def test_a_connection_that_says_nothing_is_closed_without_a_word(before: bytes) -> None:
    clients = Clients(echo)
    client = clients.connect()
    client.send(*filter(None, [before]))
    client.take()

    clients.clock.advance(119.9)
    assert not client.is_closed()
    clients.clock.advance(0.2)

    assert client.is_closed()
    assert client.take() == b""
    assert clients.clock.getDelayedCalls() == []


def test_a_request_may_wait_longer_than_any_idle_limit() -> None:
    desk = Desk()
    clients = Clients(desk)
    client = clients.connect()
    client.send(GET % 1)

    clients.clock.pump([60.0] * 120)
    assert not client.is_closed()
    desk.exchanges[0].respond(200)
    clients.clock.pump([1.0] * 119)
    assert not client.is_closed()
    clients.clock.advance(2)
    assert client.is_closed()


def test_a_busy_connection_makes_no_timer_per_request() -> None:
    clients = Clients(echo)
    client = clients.connect()
    (timer,) = clients.clock.getDelayedCalls()

    for n in range(50):
        client.send(GET % n)

    assert clients.clock.getDelayedCalls() == [timer]


def test_a_client_that_never_takes_its_answer_is_cut_in_the_end() -> None:
    clients = Clients(echo)
    client = clients.connect()
    client.stall()
    client.send(GET % 1)

    clients.clock.advance(119)
    assert not client.is_closed()
    clients.clock.advance(2)
    assert client.is_aborted()


@pytest.mark.parametrize(
    ("request_bytes", "closed"),
    [
        (b"GET / HTTP/1.0\r\n\r\n", True),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", False),
    ],
)
def test_the_client_chooses_whether_the_connection_is_kept(request_bytes: bytes, closed: bool) -> None:
    client = Clients(echo).connect()

    client.send(request_bytes)

    head = client.take()
    assert client.is_closed() is closed
    assert (b"Connection: close" in head) is closed
    assert (b"Connection: keep-alive" in head) is (b"keep-alive" in request_bytes)


def test_an_answer_to_a_body_left_unread_closes_the_connection() -> None:
    desk = Desk()
    client = Clients(desk).connect()
    client.send(POST[:-1])

    desk.exchanges[0].respond(401)

    assert b"Connection: close" in client.take()
    assert client.is_closed()


def test_closing_ends_idle_connections_now_and_busy_ones_after_their_answer() -> None:
    desk = Desk()
    clients = Clients(desk)
    idle, busy = clients.connect(), clients.connect()
    busy.send(GET % 1 + GET % 2)

    clients.factory.close_idle()
    assert (idle.is_closed(), busy.is_closed()) == (True, False)

    desk.exchanges[0].respond(200)
    assert busy.is_closed()
    assert b"Connection: close" in busy.take()
    assert len(desk.exchanges) == 1


def test_the_client_is_known_by_its_address() -> None:
    desk = Desk()
    clients = Clients(desk)
    clients.clock.advance(5)
    clients.connect().send(GET % 1)

    assert desk.exchanges[0].client_host == "192.168.1.1"
    assert desk.exchanges[0].received == 5
