"""One exchange answered by an upstream."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectionRefusedError as Refused
from typing_extensions import override

from llamaswap.http1.client import Pool, UpstreamFailed
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.heads import ResponseHead
from llamaswap.http1.relay import Ended, Outcome, relay
from llamaswap.http1.upstream import STALE_SECONDS
from support.http1_house import CHUNKED, CHUNKS, ENDLESS, GET, OLD, SIZED, House, Listener
from support.http1_wires import TODAY, Clients, Running, Upstreams, split

DATE = b"Date: %b\r\n" % TODAY.encode()


def test_a_chunked_response_crosses_byte_for_byte() -> None:
    house = House(observer=(listener := Listener()))
    upstream = house.upstreams.accept()
    assert upstream.take() == b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n"
    house.upstreams.advance(3)

    upstream.send(CHUNKED + CHUNKS)

    assert house.client.take() == (
        b"HTTP/1.1 200 OK\r\nDate: d\r\nx-Y: z\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS
    )
    (outcome,) = house.outcomes
    assert (outcome.ended, outcome.head.status, outcome.body_bytes) == (Ended.COMPLETE, 200, 6)
    assert (listener.statuses, listener.body) == ([200], b"hello!")
    assert not house.client.is_closed()
    assert not upstream.is_closed()


@given(st.lists(st.integers(0, 200), max_size=12), st.sampled_from([CHUNKED + CHUNKS, SIZED + b"hello!"]))
def test_any_split_of_the_response_reaches_the_client_the_same(cuts: list[int], response: bytes) -> None:
    house = House(observer=(listener := Listener()))

    house.upstreams.accept().send(*split(response, cuts))

    got = house.client.take()
    assert got.partition(b"\r\n\r\n")[2] == response.partition(b"\r\n\r\n")[2]
    assert got.count(b"HTTP/1.1") == 1
    assert listener.body == b"hello!"
    assert house.ended() == [Ended.COMPLETE]


def test_every_piece_is_handed_on_as_soon_as_it_comes() -> None:
    house = House()
    upstream = house.upstreams.accept()

    upstream.send(CHUNKED)
    assert house.client.take().endswith(b"\r\n\r\n")
    upstream.send(b"5\r\nhel")
    assert house.client.take() == b"5\r\nhel"
    upstream.send(b"lo\r\n")
    assert house.client.take() == b"lo\r\n"
    assert house.outcomes == []
    upstream.send(b"0\r\n\r\n")
    assert house.client.take() == b"0\r\n\r\n"
    assert house.ended() == [Ended.COMPLETE]


def test_fields_of_one_hop_stay_on_their_hop() -> None:
    house = House(GET[:-2] + b"Connection: X-Mine\r\nX-Mine: 1\r\nTE: trailers\r\nx-Case: kept\r\n\r\n")
    upstream = house.upstreams.accept()
    assert upstream.take() == b"GET /x HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nx-Case: kept\r\n\r\n"

    upstream.send(
        SIZED[:-2] + b"Keep-Alive: timeout=5\r\nConnection: keep-alive\r\nx-Case: kept\r\n\r\nhello!"
    )

    assert house.client.take() == SIZED[:-2] + b"x-Case: kept\r\n\r\nhello!"


def test_a_date_is_added_only_where_there_is_none() -> None:
    house = House()

    house.upstreams.accept().send(b"HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n")

    assert house.client.take() == b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n" + DATE + b"\r\n"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (b"200 Fine", b"200 OK"),
        (b"404 ", b"404 Not Found"),
        (b"599 Odd Day", b"599 Odd Day"),
        (b"599 ", b"599 "),
    ],
)
def test_a_known_status_has_its_usual_phrase_and_an_unknown_one_its_own(said: bytes, shown: bytes) -> None:
    house = House()

    house.upstreams.accept().send(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % said)

    assert house.client.take().startswith(b"HTTP/1.1 %b\r\n" % shown)


def test_added_fields_replace_those_of_the_same_name() -> None:
    def add(head: ResponseHead) -> list[tuple[bytes, bytes]]:
        return [(b"X-Accel-Buffering", b"no")] if head.get(b"content-length") else []

    house = House(add_headers=add)

    house.upstreams.accept().send(SIZED[:-2] + b"x-accel-buffering: yes\r\n\r\nhello!")

    assert house.client.take() == SIZED[:-2] + b"X-Accel-Buffering: no\r\n\r\nhello!"


def test_an_old_client_gets_chunks_undone_and_the_end_of_the_connection() -> None:
    house = House(OLD, observer=(listener := Listener()))
    upstream = house.upstreams.accept()

    upstream.send(CHUNKED)
    assert house.client.take() == b"HTTP/1.1 200 OK\r\nDate: d\r\nx-Y: z\r\nConnection: close\r\n\r\n"
    upstream.send(CHUNKS)

    assert house.client.take() == listener.body == b"hello!"
    assert house.client.is_closed()
    assert house.ended() == [Ended.COMPLETE]


def test_an_old_client_keeps_its_connection_where_the_length_is_known() -> None:
    house = House(OLD)

    house.upstreams.accept().send(SIZED + b"hello!")

    assert house.client.take() == SIZED[:-2] + b"Connection: keep-alive\r\n\r\nhello!"
    assert not house.client.is_closed()


def test_a_response_that_ends_by_closing_is_chunked_for_the_client() -> None:
    house = House(observer=(listener := Listener()))
    upstream = house.upstreams.accept()

    upstream.send(ENDLESS + b"hello", b"!")
    upstream.leave()

    assert (
        house.client.take()
        == ENDLESS[:-2] + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n"
    )
    assert listener.body == b"hello!"
    assert not house.client.is_closed()
    assert (house.outcomes[0].ended, house.outcomes[0].body_bytes) == (Ended.COMPLETE, 6)


def test_a_response_that_ends_by_closing_ends_so_for_an_old_client() -> None:
    house = House(OLD)
    upstream = house.upstreams.accept()

    upstream.send(ENDLESS + b"hello")
    upstream.leave()

    assert house.client.take() == ENDLESS[:-2] + b"Connection: close\r\n\r\nhello"
    assert house.client.is_closed()
    assert not house.client.is_aborted()


@pytest.mark.parametrize(
    ("request_bytes", "response", "expected"),
    [
        (GET.replace(b"GET", b"HEAD"), SIZED, SIZED),
        (GET.replace(b"GET", b"HEAD"), CHUNKED, b"HTTP/1.1 200 OK\r\nDate: d\r\nx-Y: z\r\n\r\n"),
        (GET, b"HTTP/1.1 204 No Content\r\nDate: d\r\n\r\n", b"HTTP/1.1 204 No Content\r\nDate: d\r\n\r\n"),
        (
            GET,
            b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nDate: d\r\n\r\n",
            b"HTTP/1.1 204 No Content\r\nDate: d\r\n\r\n",
        ),
        (
            GET,
            b"HTTP/1.1 304 Not Modified\r\nDate: d\r\nContent-Length: 6\r\n\r\n",
            b"HTTP/1.1 304 Not Modified\r\nDate: d\r\nContent-Length: 6\r\n\r\n",
        ),
        (
            GET,
            b"HTTP/1.1 200 OK\r\nDate: d\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nDate: d\r\nContent-Length: 0\r\n\r\n",
        ),
    ],
)
def test_responses_without_a_body_keep_both_connections(
    request_bytes: bytes, response: bytes, expected: bytes
) -> None:
    house = House(request_bytes)
    upstream = house.upstreams.accept()

    upstream.send(response)

    assert house.client.take() == expected
    assert house.ended() == [Ended.COMPLETE]
    assert not house.client.is_closed() and not upstream.is_closed()


def test_interim_heads_are_passed_on_and_a_hundred_is_not() -> None:
    house = House()

    house.upstreams.accept().send(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + SIZED + b"hello!"
    )

    assert house.client.take() == b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + SIZED + b"hello!"


def test_a_chunked_request_is_sent_on_as_it_came() -> None:
    wire = b"3;x\r\nabc\r\n0\r\nT: u\r\n\r\n"
    house = House(b"POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + wire)

    assert house.upstreams.accept().take() == b"POST /x HTTP/1.1\r\nHost: h\r\n\r\n" + wire


def test_the_next_request_uses_the_same_upstream_connection() -> None:
    house = House(GET * 3)
    upstream = house.upstreams.accept()
    for _ in range(3):
        assert upstream.take() == b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n"
        upstream.send(SIZED + b"hello!")

    assert house.client.take() == (SIZED + b"hello!") * 3
    assert house.upstreams.attempts == 0
    assert house.ended() == [Ended.COMPLETE] * 3


def test_a_stale_connection_is_replaced_without_anybody_noticing() -> None:
    house = House(GET)
    stale = house.upstreams.accept()
    stale.send(SIZED + b"hello!")
    house.client.send(GET)
    house.client.take()

    stale.reset()
    fresh = house.upstreams.accept()
    assert fresh.take() == b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n"
    fresh.send(SIZED + b"again!")

    assert house.client.take() == SIZED + b"again!"
    assert house.ended() == [Ended.COMPLETE] * 2


def test_a_request_is_tried_again_only_once_and_only_if_nothing_came_back() -> None:
    house = House(GET)
    first = house.upstreams.accept()
    first.send(SIZED + b"hello!")
    house.client.send(GET)
    first.reset()
    house.upstreams.accept().reset()
    assert house.ends == ["connection closed before the response head was complete"]

    house.client.send(GET)
    second = house.upstreams.accept()
    second.send(SIZED + b"hello!")
    house.client.send(GET)
    second.send(b"HT")
    second.reset()
    assert house.ends == ["connection closed before the response head was complete"] * 2
    assert house.upstreams.attempts == 0


def test_a_request_that_its_upstream_has_worked_on_is_not_sent_a_second_time() -> None:
    house = House(GET)
    upstream = house.upstreams.accept()
    upstream.send(SIZED + b"hello!")
    house.client.send(GET)

    house.upstreams.advance(STALE_SECONDS + 0.1)
    upstream.reset()

    assert house.ends == ["connection closed before the response head was complete"]
    assert house.upstreams.attempts == 0


def test_an_upstream_that_refuses_is_left_to_the_caller_to_report() -> None:
    house = House()

    house.upstreams.refuse(Refused())

    assert house.client.take().startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    assert not house.client.is_closed()


def test_an_upstream_that_does_not_answer_in_time_is_not_asked_again() -> None:
    house = House(GET, header_timeout=5)
    upstream = house.upstreams.accept()
    upstream.send(SIZED + b"hello!")
    house.client.send(GET)

    house.upstreams.advance(5)

    assert house.ends == ["timed out waiting for the response head"]
    assert house.upstreams.attempts == 0
    assert upstream.is_aborted()


@pytest.mark.parametrize(
    "sent",
    [
        CHUNKED + b"5\r\nhello\r\n",
        CHUNKED,
        SIZED + b"hell",
        CHUNKED + b"5\r\nhello\r\nzz\r\n",
        ENDLESS + b"hel",
    ],
)
def test_an_upstream_that_dies_in_the_middle_cuts_the_client(sent: bytes) -> None:
    house = House()
    upstream = house.upstreams.accept()

    upstream.send(sent)
    upstream.reset()
    house.upstreams.advance(0)

    assert house.client.is_aborted()
    assert not house.client.take().endswith(b"0\r\n\r\n")
    assert house.ended() == [Ended.UPSTREAM_DIED]
    assert house.ends == []


@pytest.mark.parametrize("sent", [CHUNKED, SIZED + b"hel"])
def test_a_client_that_leaves_takes_the_upstream_with_it_in_the_same_turn(sent: bytes) -> None:
    house = House()
    upstream = house.upstreams.accept()
    upstream.send(sent)

    house.client.leave()

    assert upstream.is_aborted()
    assert house.ended() == [Ended.CLIENT_LEFT]


def test_a_client_that_leaves_before_the_head_cancels_the_relay() -> None:
    house = House()
    upstream = house.upstreams.accept()

    house.client.leave()

    assert upstream.is_aborted()
    assert house.ends == ["cancelled"]


def test_a_client_that_leaves_while_we_connect_stops_the_attempt() -> None:
    house = House()

    house.client.leave()

    assert house.upstreams.connectors[0].stoppedConnecting
    assert house.ends == ["cancelled"]


def test_an_upstream_that_cannot_stop_is_listened_to_until_its_end() -> None:
    house = House(drain=True, observer=(listener := Listener()))
    upstream = house.upstreams.accept()
    upstream.send(SIZED + b"hel")

    house.client.leave()
    assert not upstream.is_closed()
    assert house.outcomes == []

    upstream.send(b"lo!")
    assert house.ended() == [Ended.CLIENT_LEFT]
    assert listener.body == b"hello!"


@pytest.mark.parametrize("answers", [True, False])
def test_draining_begins_before_the_head_too(answers: bool) -> None:
    house = House(drain=True)
    upstream = house.upstreams.accept()
    house.client.leave()

    if answers:
        upstream.send(SIZED + b"hello!")
        assert (house.ended(), house.ends) == ([Ended.CLIENT_LEFT], [])
    else:
        upstream.leave()
        assert (house.ended(), house.ends) == ([], ["cancelled"])


def test_a_relay_that_is_cancelled_for_another_reason_cuts_both_sides() -> None:
    upstreams = Upstreams()
    seen: list[Running[Outcome]] = []

    async def handler(exchange: Exchange) -> None:
        run = relay(exchange, Pool(upstreams), "127.0.0.1", 81, [GET], method=b"GET", drain=True)
        seen.append(Running(run))
        await Deferred()

    client = Clients(handler, upstreams).connect()
    client.send(GET)
    upstream = upstreams.accept()
    upstream.send(SIZED + b"hel")

    seen[0].cancel()

    assert upstream.is_aborted() and client.is_aborted()
    assert seen[0].result().ended is Ended.CLIENT_LEFT


def test_whoever_cancels_a_relay_before_it_began_to_answer_may_still_say_why() -> None:
    upstreams = Upstreams()
    seen: list[tuple[Exchange, Running[Outcome]]] = []

    async def handler(exchange: Exchange) -> None:
        run = relay(exchange, Pool(upstreams), "127.0.0.1", 81, [GET], method=b"GET")
        seen.append((exchange, Running(run)))
        await Deferred()

    client = Clients(handler, upstreams).connect()
    client.send(GET)
    upstream = upstreams.accept()
    exchange, running = seen[0]

    running.cancel()
    exchange.respond(503, b"stopped")

    assert upstream.is_aborted() and not client.is_aborted()
    assert client.take().startswith(b"HTTP/1.1 503 ")
    assert isinstance(running.error(), CancelledError)


def test_the_relay_ends_with_the_upstream_while_a_slow_client_still_reads() -> None:
    house = House()
    upstream = house.upstreams.accept()
    house.client.stall()

    upstream.send(SIZED + b"hello!")

    assert house.ended() == [Ended.COMPLETE]
    assert house.client.take() == b""
    house.client.go_on()
    assert house.client.take() == SIZED + b"hello!"


def test_the_upstream_is_held_back_only_beyond_high_water() -> None:
    house = House(high_water=100)
    upstream = house.upstreams.accept()
    upstream.send(ENDLESS)
    house.client.stall()

    upstream.send(b"a" * 90)
    assert not upstream.is_paused()
    upstream.send(b"b" * 90)
    assert upstream.is_paused()

    house.client.go_on()
    assert not upstream.is_paused()
    assert house.client.take().count(b"b") == 90


def test_a_client_that_holds_the_upstream_up_and_takes_nothing_is_cut_in_the_end() -> None:
    house = House(high_water=100)
    upstream = house.upstreams.accept()
    house.client.stall()
    upstream.send(ENDLESS + b"a" * 200)

    house.upstreams.advance(119)
    assert not house.client.is_closed()
    house.upstreams.advance(2)

    assert house.client.is_aborted()
    assert upstream.is_aborted()
    assert house.ended() == [Ended.CLIENT_LEFT]


def test_a_client_that_has_caught_up_may_wait_for_the_upstream_as_long_as_that_takes() -> None:
    house = House(high_water=100)
    upstream = house.upstreams.accept()
    upstream.send(ENDLESS)
    for _ in range(3):
        house.client.stall()
        upstream.send(b"a" * 200)
        house.upstreams.advance(100)
        house.client.go_on()

    house.upstreams.advance(3600)

    assert not house.client.is_closed()
    upstream.send(b"b")
    assert house.client.take().endswith(b"\r\nb\r\n")


def test_a_paused_upstream_is_cut_when_the_client_leaves() -> None:
    house = House(high_water=100)
    upstream = house.upstreams.accept()
    house.client.stall()
    upstream.send(ENDLESS + b"a" * 200)

    house.client.leave()

    assert upstream.is_aborted()


def test_a_paused_upstream_runs_on_when_it_is_to_be_drained() -> None:
    house = House(high_water=100, drain=True)
    upstream = house.upstreams.accept()
    house.client.stall()
    upstream.send(ENDLESS + b"a" * 200)

    house.client.leave()

    assert not upstream.is_closed()
    assert not upstream.is_paused()


def test_an_answer_that_comes_before_the_whole_request_is_sent_is_relayed() -> None:
    upstreams = Upstreams()
    outcomes: list[Outcome] = []

    async def handler(exchange: Exchange) -> None:
        pieces = [GET, b"a" * 70000, b"b" * 70000]
        outcomes.append(await relay(exchange, Pool(upstreams), "127.0.0.1", 81, pieces, method=b"POST"))

    client = Clients(handler, upstreams).connect()
    client.send(GET)
    end = upstreams.accept()
    end.stall()

    end.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")

    assert client.take().startswith(b"HTTP/1.1 413 ")
    assert outcomes[0].ended is Ended.COMPLETE


def test_a_switch_nobody_asked_for_is_a_failed_upstream() -> None:
    house = House()

    house.upstreams.accept().send(
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
    )

    assert house.client.take().startswith(b"HTTP/1.1 502 ")
    assert house.ends == ["malformed response: 101 for a request that asked for no upgrade"]


class Continued(House):
    """A house whose response has begun before the upstream is asked."""

    def __init__(self, request: bytes = GET, **options: Any) -> None:
        super().__init__(request, **options)
        self.opening = self.client.take()

    @override
    async def _handle(self, exchange: Exchange) -> None:
        stream = exchange.stream(200, [(b"A", b"b")])
        stream.write(b"wait ")
        self.options["into"] = lambda: stream
        self.exchanges.append(exchange)
        try:
            run = relay(exchange, self.pool, "127.0.0.1", 81, [GET], method=b"GET", **self.options)
            self.outcomes.append(await run)
        except UpstreamFailed as error:
            self.ends.append(error.reason)
            stream.write(b"sorry")
            stream.finish()


@given(st.lists(st.integers(0, 200), max_size=12), st.sampled_from([CHUNKED + CHUNKS, SIZED + b"hello!"]))
def test_a_response_under_way_gets_the_bare_body_in_a_framing_of_its_own(
    cuts: list[int], response: bytes
) -> None:
    house = Continued(observer=(listener := Listener()))
    assert house.opening.endswith(b"\r\n\r\n5\r\nwait \r\n")

    house.upstreams.accept().send(*split(response, cuts))

    chunks = house.client.take().split(b"\r\n")
    assert b"".join(chunks[1:-3:2]) == listener.body == b"hello!"
    assert chunks[-3:] == [b"0", b"", b""]
    assert (listener.statuses, house.outcomes[0].head.status) == ([200], 200)
    assert (house.ended(), house.outcomes[0].body_bytes) == ([Ended.COMPLETE], 6)
    assert house.exchanges[0].body_bytes == len(b"wait hello!")
    assert not house.client.is_closed()


def test_a_response_under_way_to_an_old_client_ends_with_its_connection() -> None:
    house = Continued(OLD)

    house.upstreams.accept().send(SIZED + b"hello!")

    assert house.client.take() == b"hello!"
    assert house.client.is_closed()


def test_an_upstream_that_ends_by_closing_ends_a_response_under_way() -> None:
    house = Continued()
    upstream = house.upstreams.accept()
    upstream.send(ENDLESS + b"hello!")

    upstream.leave()

    assert house.client.take() == b"6\r\nhello!\r\n0\r\n\r\n"
    assert house.ended() == [Ended.COMPLETE]


def test_an_error_of_the_upstream_is_a_body_like_any_other() -> None:
    house = Continued()

    house.upstreams.accept().send(b"HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\noops")

    assert house.client.take() == b"4\r\noops\r\n0\r\n\r\n"
    assert house.outcomes[0].head.status == 500


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
        SIZED[:-2] + b"Content-Encoding: br\r\n\r\nhello!",
    ],
)
def test_what_a_response_under_way_cannot_carry_is_left_to_the_caller(response: bytes) -> None:
    house = Continued()

    house.upstreams.accept().send(response)

    assert house.client.take() == b"5\r\nsorry\r\n0\r\n\r\n"
    assert len(house.ends) == 1 and house.ends[0].startswith("malformed response: ")


def test_an_upstream_that_refuses_leaves_a_response_under_way_to_the_caller() -> None:
    house = Continued()

    house.upstreams.refuse(Refused())

    assert house.client.take() == b"5\r\nsorry\r\n0\r\n\r\n"


def test_an_upstream_that_dies_cuts_a_response_under_way() -> None:
    house = Continued()
    upstream = house.upstreams.accept()
    upstream.send(SIZED + b"hell")

    upstream.reset()

    assert house.client.is_aborted()
    assert house.client.take() == b"4\r\nhell\r\n"
    assert house.ended() == [Ended.UPSTREAM_DIED]


def test_a_client_that_leaves_a_response_under_way_takes_the_upstream_with_it() -> None:
    house = Continued()
    upstream = house.upstreams.accept()
    upstream.send(SIZED + b"hell")

    house.client.leave()

    assert upstream.is_aborted()
    assert house.ended() == [Ended.CLIENT_LEFT]


def test_a_response_under_way_holds_its_upstream_back_too() -> None:
    house = Continued(high_water=100)
    upstream = house.upstreams.accept()
    upstream.send(ENDLESS)
    house.client.stall()

    upstream.send(b"a" * 50, b"b" * 90)
    assert upstream.is_paused()

    house.client.go_on()
    assert not upstream.is_paused()


@pytest.mark.parametrize("response", [CHUNKED + CHUNKS, SIZED + b"hello!"])
def test_the_exchange_knows_how_much_crossed(response: bytes) -> None:
    house = House()

    house.upstreams.accept().send(response)

    assert (house.exchanges[0].status, house.exchanges[0].body_bytes) == (200, 6)


def test_what_crossed_before_the_client_left_is_known_too() -> None:
    house = House()
    house.upstreams.accept().send(CHUNKED + b"5\r\nhello\r\n")

    house.client.leave()

    assert house.exchanges[0].body_bytes == house.outcomes[0].body_bytes == 5


@pytest.mark.parametrize("request_", [GET, GET.replace(b"GET", b"HEAD"), OLD])
def test_responses_that_are_alike_but_for_their_length_cross_alike(request_: bytes) -> None:
    house = House(request_)
    upstream = house.upstreams.accept()
    seen = []
    for number, body in enumerate([b"hello!", b"", b"x" * 10, b"hello!", b"four"]):
        if number:
            house.client.send(request_)
        silent = request_.startswith(b"HEAD")
        upstream.send(SIZED.replace(b"6", b"%d" % len(body)) + (b"" if silent else body))
        got = house.client.take()
        assert b"\r\nContent-Length: %d\r\n" % len(body) in got
        assert got.endswith(b"\r\n\r\n" if silent else b"\r\n\r\n" + body)
        seen.append(got.partition(b"\r\n\r\n")[0].replace(b"Length: %d" % len(body), b"Length"))

    assert house.ended() == [Ended.COMPLETE] * 5
    assert len(set(seen)) == 1


def test_one_response_reaches_clients_of_both_versions_as_each_understands_it() -> None:
    house = House(GET)
    upstream = house.upstreams.accept()
    old = house.clients.connect()
    for _ in range(3):
        upstream.send(CHUNKED + CHUNKS)
        assert b"Transfer-Encoding: chunked" in house.client.take()
        old.send(b"GET /x HTTP/1.0\r\nHost: h\r\n\r\n")
        upstream.send(CHUNKED + CHUNKS)
        assert old.take().endswith(b"\r\nConnection: close\r\n\r\nhello!")
        old = house.clients.connect()
        house.client.send(GET)
