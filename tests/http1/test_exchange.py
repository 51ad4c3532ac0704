"""Requests and responses as handlers see them."""

from __future__ import annotations

import pytest
from twisted.internet.defer import CancelledError, Deferred

from llamaswap.http1.exchange import ClientGone, Exchange
from llamaswap.http1.framing import Framing
from support.http1_wires import TODAY, Clients, End, Running

DATE = b"Date: %b\r\n" % TODAY.encode()


def ask(request: bytes) -> tuple[Exchange, End]:
    """An exchange that waits to be answered, and its client."""
    seen: list[Exchange] = []

    async def handler(exchange: Exchange) -> None:
        seen.append(exchange)
        await Deferred[None]()

    client = Clients(handler).connect()
    client.send(request)
    return seen[0], client


GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


def test_an_answer_gets_its_length_and_date() -> None:
    exchange, client = ask(GET)

    exchange.respond(404, b"gone\n", headers=[(b"x-Case", b"kept")])

    assert client.take() == (
        b"HTTP/1.1 404 Not Found\r\nx-Case: kept\r\nContent-Length: 5\r\n" + DATE + b"\r\ngone\n"
    )
    assert exchange.started and exchange.finished


def test_a_date_of_the_handlers_own_is_left_alone() -> None:
    exchange, client = ask(GET)

    exchange.respond(200, headers=[(b"date", b"today")])

    assert client.take() == b"HTTP/1.1 200 OK\r\ndate: today\r\nContent-Length: 0\r\n\r\n"


def test_head_gets_the_length_but_no_body() -> None:
    exchange, client = ask(GET.replace(b"GET", b"HEAD"))

    exchange.respond(200, b"hello")

    assert client.take() == b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n" + DATE + b"\r\n"


@pytest.mark.parametrize("status", [204, 304])
def test_statuses_without_a_body_have_no_length(status: int) -> None:
    exchange, client = ask(GET)

    exchange.respond(status, b"ignored")

    assert b"Content-Length" not in (data := client.take())
    assert data.endswith(b"\r\n\r\n")


def test_an_exchange_is_answered_once() -> None:
    exchange, client = ask(GET)
    exchange.respond(200)
    client.take()

    with pytest.raises(RuntimeError):
        exchange.respond(200)
    with pytest.raises(RuntimeError):
        exchange.stream(200)
    assert client.take() == b""


def test_a_header_that_would_split_the_answer_is_an_error_and_nothing_is_sent() -> None:
    exchange, client = ask(GET)

    with pytest.raises(ValueError):
        exchange.respond(307, headers=[(b"Location", b"/\r\nSet-Cookie: a")])

    assert client.take() == b""
    exchange.respond(400)
    assert client.take().startswith(b"HTTP/1.1 400 ")


def test_an_answer_for_nobody_is_no_error() -> None:
    exchange, client = ask(GET)
    client.leave()

    exchange.respond(200, b"hello")

    assert client.take() == b""


POST = b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"


def test_a_client_that_expects_it_is_told_to_continue_when_its_body_is_asked_for() -> None:
    exchange, client = ask(POST)
    assert client.take() == b""

    waiting = Running(exchange.body())
    assert client.take() == b"HTTP/1.1 100 Continue\r\n\r\n"

    client.send(b"hi")
    assert waiting.result().decoded == b"hi"
    exchange.respond(200)
    assert client.take().startswith(b"HTTP/1.1 200 OK\r\n")
    assert not client.is_closed()


def test_a_client_that_sends_its_body_unasked_is_not_told_to() -> None:
    exchange, client = ask(POST + b"h")

    Running(exchange.body())

    assert client.take() == b""


def test_a_client_that_expects_to_be_told_is_refused_without_its_body() -> None:
    exchange, client = ask(POST)

    exchange.respond(401)

    data = client.take()
    assert data.startswith(b"HTTP/1.1 401 ")
    assert b"Connection: close" in data
    assert client.is_closed()


def test_the_body_can_be_asked_for_twice() -> None:
    exchange, _ = ask(GET)

    one = Running(exchange.body())
    two = Running(exchange.body())

    assert one.result().framing is two.result().framing is Framing.NONE


def test_asking_for_a_body_that_will_never_come_fails_at_once() -> None:
    exchange, client = ask(POST)
    client.leave()

    assert isinstance(Running(exchange.body()).error(), ClientGone)


def test_who_asks_too_late_hears_at_once_that_the_client_is_gone() -> None:
    exchange, client = ask(GET)
    client.leave()
    heard: list[str] = []

    exchange.when_gone(lambda: heard.append("gone"))

    assert heard == ["gone"]


def test_interim_heads_are_for_clients_that_know_them() -> None:
    exchange, client = ask(GET)
    exchange.interim(b"HTTP/1.1 103 Early Hints\r\n\r\n")
    assert client.take() == b"HTTP/1.1 103 Early Hints\r\n\r\n"

    old, client = ask(b"GET / HTTP/1.0\r\n\r\n")
    old.interim(b"HTTP/1.1 103 Early Hints\r\n\r\n")
    assert client.take() == b""


def test_abort_cuts_the_connection_and_is_not_the_client_leaving() -> None:
    exchange, client = ask(GET)

    exchange.abort()
    client.wire.clock.advance(0)

    assert client.is_aborted()
    assert exchange.finished and not exchange.gone


def test_what_was_answered_is_known_when_the_exchange_is_over() -> None:
    exchange, _ = ask(GET)
    known: list[tuple[int, int]] = []
    exchange.on_end = lambda _exchange: known.append((exchange.status, exchange.body_bytes))

    exchange.respond(404, b"gone\n")
    exchange.abort()

    assert known == [(404, 5)]


def test_the_end_is_told_before_the_next_request_begins() -> None:
    order: list[str] = []

    async def handler(exchange: Exchange) -> None:
        number = exchange.head.target.decode()
        order.append(f"begin {number}")
        exchange.on_end = lambda _exchange: order.append(f"end {number}")
        exchange.respond(200)

    Clients(handler).connect().send(GET.replace(b"/ ", b"/1 ") + GET.replace(b"/ ", b"/2 "))

    assert order == ["begin /1", "end /1", "begin /2", "end /2"]


@pytest.mark.parametrize("how", ["leave", "abort", "break"])
def test_an_exchange_without_an_answer_ends_once_too(how: str) -> None:
    ends: list[int] = []
    exchange, client = ask(GET if how != "break" else GET[:-2] + b"Transfer-Encoding: chunked\r\n\r\n")
    exchange.on_end = lambda _exchange: ends.append(exchange.status)

    if how == "leave":
        client.leave()
    elif how == "abort":
        exchange.abort()
        client.reset()
    else:
        client.send(b"no size\r\n")

    assert ends == [400 if how == "break" else 0]


def test_the_end_comes_after_the_handler_has_been_cancelled() -> None:
    order: list[str] = []

    async def handler(exchange: Exchange) -> None:
        exchange.on_end = lambda _exchange: order.append("end")
        try:
            await Deferred[None]()
        finally:
            order.append("cancelled")

    client = Clients(handler).connect()
    client.send(GET)
    client.leave()

    assert order == ["cancelled", "end"]


def test_who_answers_can_be_cancelled_while_the_client_stays() -> None:
    seen: list[Exchange] = []

    async def handler(exchange: Exchange) -> None:
        seen.append(exchange)
        try:
            await Deferred[None]()
        except CancelledError:
            exchange.respond(503, b"cancelled")

    client = Clients(handler).connect()
    client.send(GET)
    seen[0].cancel()

    assert client.take().startswith(b"HTTP/1.1 503 ")
    seen[0].cancel()
    assert not client.is_closed()


def test_a_handler_that_cancels_itself_is_cancelled_where_it_next_waits() -> None:
    ends: list[str] = []

    async def handler(exchange: Exchange) -> None:
        exchange.cancel()
        ends.append("goes on")
        try:
            await Deferred[None]()
        except CancelledError:
            ends.append("cancelled")
        exchange.respond(200)

    Clients(handler).connect().send(GET)

    assert ends == ["goes on", "cancelled"]


def test_a_body_that_came_with_its_head_is_at_hand() -> None:
    exchange, client = ask(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nab")
    assert exchange.body_at_hand() is None

    client.send(b"c")

    body = exchange.body_at_hand()
    assert body is not None
    assert body.decoded == b"abc"


def test_head_counts_no_body() -> None:
    exchange, _ = ask(GET.replace(b"GET", b"HEAD"))

    exchange.respond(200, b"hello")

    assert exchange.body_bytes == 0


def test_fields_of_its_own_are_in_whatever_head_it_gets() -> None:
    (whole, first), (streamed, second) = ask(GET), ask(GET)
    for exchange in (whole, streamed):
        exchange.own_lines = b"X-Why: 1\r\nX-When: 2\r\n"

    whole.respond(503, b"no")
    streamed.stream(200)

    for client in (first, second):
        assert b"\r\nX-Why: 1\r\nX-When: 2\r\n" in client.take()
