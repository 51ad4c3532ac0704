"""What a model's server sees of its callers, and what they see of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.config.model import ModelConfig, Timeouts
from llamaswap.http1.body import Body
from llamaswap.http1.client import Pool
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.framing import Framing
from llamaswap.http1.heads import RequestHead, ResponseHead
from llamaswap.http1.relay import HIGH_WATER_BYTES, Ended, Outcome
from llamaswap.processes.health import parse_proxy
from llamaswap.proxying.local import (
    NO_LIMIT,
    LocalUpstream,
    framing_lines,
    text,
    unbuffered,
    upstream_fields,
)
from support.http1_house import Listener
from support.http1_wires import Upstreams
from support.proxying_house import House

Pairs = list[tuple[bytes, bytes]]

NOTHING = Body(Framing.NONE, [], [], 0)
SEVEN = Body(Framing.LENGTH, [b"1234567"], [b"1234567"], 7)
CHUNKS = Body(Framing.CHUNKED, [b"1"], [b"1\r\n1\r\n0\r\n\r\n"], 1)


def seen(headers: Pairs, *, body: Body = NOTHING, client: str = "", metered: bool = False) -> Pairs:
    """What the upstream sees of these header fields."""
    head = RequestHead(b"POST", b"/", (1, 1), tuple(headers))
    name, _, value = framing_lines(body).removesuffix(b"\r\n\r\n").removesuffix(b"\r\n").partition(b": ")
    framing = [(name, value)] if name else []
    return upstream_fields(head, client, metered=metered) + framing


def test_a_clients_fields_arrive_in_their_order_and_case() -> None:
    headers = [
        (b"HOST", b"box.example:8080"),
        (b"x-One", b"1"),
        (b"User-Agent", b"me"),
        (b"Authorization", b"Bearer secret"),
        (b"x-api-key", b"secret"),
        (b"X-LlamaSwap-Priority", b"batch"),
        (b"Cookie", b"a=b"),
        (b"x-One", b"2"),
        (b"X-Forwarded-Proto", b"https"),
        (b"X-Forwarded-Host", b"outside"),
        (b"Forwarded", b"for=1.2.3.4"),
    ]

    assert seen(headers) == headers


@pytest.mark.parametrize(
    "name",
    [
        b"Connection",
        b"Proxy-Connection",
        b"Keep-Alive",
        b"Proxy-Authenticate",
        b"Proxy-Authorization",
        b"Te",
        b"Trailer",
        b"Transfer-Encoding",
        b"Upgrade",
        b"Expect",
        b"EXPECT",
        b"Content-Length",
    ],
)
def test_what_concerns_one_hop_stays_behind(name: bytes) -> None:
    assert seen([(b"Host", b"h"), (name, b"x")]) == [(b"Host", b"h")]


def test_what_connection_lists_stays_behind_too() -> None:
    headers = [(b"Connection", b"close, X-Mine"), (b"X-Mine", b"1"), (b"X-Other", b"2")]

    assert seen(headers) == [(b"X-Other", b"2")]


def test_a_wish_for_trailers_is_passed_on_and_nothing_else_of_te() -> None:
    assert seen([(b"TE", b"gzip;q=0.5, trailers")]) == [(b"TE", b"trailers")]


def test_a_wish_for_an_upgrade_is_passed_on() -> None:
    headers = [
        (b"Connection", b"keep-alive, Upgrade"),
        (b"Upgrade", b"websocket"),
        (b"Sec-WebSocket-Key", b"k"),
    ]

    assert sorted(seen(headers)) == [
        (b"Connection", b"Upgrade"),
        (b"Sec-WebSocket-Key", b"k"),
        (b"Upgrade", b"websocket"),
    ]


@pytest.mark.parametrize(
    ("before", "client", "after"),
    [
        ([], "10.0.0.1", [b"10.0.0.1"]),
        ([], "::1", [b"::1"]),
        ([], "", []),
        ([b"1.2.3.4"], "10.0.0.1", [b"1.2.3.4, 10.0.0.1"]),
        ([b"1.2.3.4", b"5.6.7.8, 9.9.9.9"], "10.0.0.1", [b"1.2.3.4, 5.6.7.8, 9.9.9.9, 10.0.0.1"]),
        ([b"1.2.3.4"], "", [b"1.2.3.4"]),
    ],
)
def test_the_clients_address_is_appended(before: list[bytes], client: str, after: list[bytes]) -> None:
    headers = [(b"x-forwarded-for", value) for value in before]

    assert seen(headers, client=client) == [(b"X-Forwarded-For", value) for value in after]


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (b"gzip", b"gzip"),
        (b"gzip, deflate", b"gzip, deflate"),
        (b"br, gzip;q=0.8, zstd", b"gzip;q=0.8"),
        (b"GZip", b"GZip"),
        (b"deflate;q=0.5,br;q=1", b"deflate;q=0.5"),
        (b"br, zstd", None),
        (b"identity", None),
        (b"*", None),
        (b"", None),
        (b"xgzip", None),
    ],
)
def test_on_metered_routes_only_what_the_meter_can_decode_is_asked_for(
    asked: bytes, kept: bytes | None
) -> None:
    headers = [(b"accept-Encoding", asked)]

    assert seen(headers, metered=True) == ([] if kept is None else [(b"accept-Encoding", kept)])
    assert seen(headers) == headers


def test_a_body_is_announced_as_it_came() -> None:
    said = [(b"Content-Length", b"999"), (b"Transfer-Encoding", b"gzip")]

    assert seen(said, body=NOTHING) == []
    assert seen(said, body=SEVEN) == [(b"Content-Length", b"7")]
    assert seen(said, body=CHUNKS) == [(b"Transfer-Encoding", b"chunked")]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                [b"Connection", b"X-A", b"Content-Length", b"Transfer-Encoding", b"Upgrade", b"TE"]
            ),
            st.sampled_from(
                [b"x-a", b"close", b"chunked", b"5", b"upgrade, x-a", b"trailers", b"content-length"]
            ),
        ),
        max_size=6,
    ),
    st.sampled_from([NOTHING, SEVEN, CHUNKS]),
)
def test_an_upstream_can_never_be_told_two_ways_where_a_body_ends(headers: Pairs, body: Body) -> None:
    names = [name.lower() for name, _ in seen(headers, body=body)]

    framings = names.count(b"content-length") + names.count(b"transfer-encoding")
    assert framings == (0 if body is NOTHING else 1)


@pytest.mark.parametrize(
    ("kind", "marked"),
    [
        (b"text/event-stream", True),
        (b"text/event-stream; charset=utf-8", True),
        (b"application/json", False),
        (None, False),
    ],
)
def test_event_streams_are_marked_for_proxies_in_between(kind: bytes | None, *, marked: bool) -> None:
    headers = () if kind is None else ((b"content-type", kind),)

    added = tuple(unbuffered(ResponseHead(200, b"OK", (1, 1), headers)))

    assert added == (((b"X-Accel-Buffering", b"no"),) if marked else ())


def test_a_header_value_becomes_text_whatever_its_bytes() -> None:
    assert (text(None), text(b"a"), text(b"\xff")) == ("", "a", "\xff")


TLS_HANDSHAKE = b"\x16\x03"  # the record's kind and major version
ASKED = b"POST /v1/chat?q=1 HTTP/1.1\r\nHost: us\r\nAccept-Encoding: br, gzip\r\nContent-Length: 2\r\n\r\n{}"
ANSWER = b"HTTP/1.1 200 OK\r\nDate: d\r\nContent-Type: text/event-stream\r\nContent-Length: 2\r\n\r\nok"


class Local(House):
    """A house that hands everything to one local model's server."""

    def __init__(
        self,
        timeouts: Timeouts | None = None,
        proxy: str = "http://10.0.0.1:81/base",
        high_water: int = HIGH_WATER_BYTES,
    ) -> None:
        upstreams = Upstreams()
        self.model = ModelConfig(id="m", timeouts=timeouts or Timeouts())
        self.pool = Pool(upstreams)
        self.seen = Listener()
        self.metered = False
        self.streamed = False
        self._address = parse_proxy(proxy)
        self._local = LocalUpstream(self.pool, high_water=high_water)
        super().__init__(self._to_model, upstreams)

    async def _to_model(self, exchange: Exchange, body: Body) -> Outcome:
        stream = None
        if self.streamed:
            stream = exchange.stream(200)
            self.client.take()
        return await self._local.forward(
            exchange,
            self._address,
            self.model,
            exchange.head.target,
            body,
            observer=self.seen,
            metered=self.metered,
            into=None if stream is None else lambda: stream,
        )


def test_a_request_goes_to_the_models_own_path_with_its_callers_host() -> None:
    house = Local()
    house.ask(ASKED)

    assert house.upstreams.tcpClients[0][:2] == ("10.0.0.1", 81)
    assert house.upstreams.accept().take() == (
        b"POST /base/v1/chat?q=1 HTTP/1.1\r\nHost: us\r\nAccept-Encoding: br, gzip\r\n"
        b"X-Forwarded-For: 192.168.1.1\r\nContent-Length: 2\r\n\r\n{}"
    )


def test_the_query_of_a_models_url_goes_with_each_request() -> None:
    house = Local(proxy="http://10.0.0.1:81?key=1")
    house.ask(ASKED)

    assert house.upstreams.accept().take().startswith(b"POST /v1/chat?key=1&q=1 HTTP/1.1\r\n")


def test_an_answer_comes_back_and_is_shown_to_the_observer() -> None:
    house = Local()
    house.ask(ASKED)
    house.upstreams.accept().send(ANSWER)

    assert b"\r\nX-Accel-Buffering: no\r\n" in house.client.take()
    assert (house.seen.statuses, house.seen.body) == ([200], b"ok")
    assert house.ended == [Ended.COMPLETE]


def test_requests_that_are_alike_but_for_their_length_each_announce_their_own() -> None:
    house = Local()
    upstream = None
    for number, body in enumerate([b"{}", b"[1234567]", b'{"a":1}', b"{}", b"1"]):
        house.metered = number % 2 == 1
        house.ask(ASKED.replace(b"Length: 2", b"Length: %d" % len(body)).replace(b"{}", body))
        upstream = upstream or house.upstreams.accept()
        coding = b"gzip" if house.metered else b"br, gzip"
        assert upstream.take() == (
            b"POST /base/v1/chat?q=1 HTTP/1.1\r\nHost: us\r\nAccept-Encoding: %b\r\n"
            b"X-Forwarded-For: 192.168.1.1\r\nContent-Length: %d\r\n\r\n%b" % (coding, len(body), body)
        )
        upstream.send(ANSWER)

    assert house.ended == [Ended.COMPLETE] * 5


def test_a_model_that_is_configured_anew_is_asked_by_its_new_ways() -> None:
    house = Local(Timeouts(connect=3))
    house.ask(ASKED)
    house.upstreams.accept().send(ANSWER)
    house.model = ModelConfig(id="m", timeouts=Timeouts(connect=7))
    house.ask(ASKED)

    assert [attempt[3] for attempt in house.upstreams.tcpClients] == [3, 7]


def test_a_metered_call_asks_only_for_codings_that_can_be_read() -> None:
    house = Local()
    house.metered = True
    house.ask(ASKED)

    assert b"\r\nAccept-Encoding: gzip\r\n" in house.upstreams.accept().take()


def test_a_response_under_way_gets_the_body_and_its_upstream_is_asked_for_no_coding() -> None:
    house = Local()
    house.streamed = True
    house.ask(ASKED)
    server = house.upstreams.accept()
    assert b"accept-encoding" not in server.take().lower()

    server.send(ANSWER)

    assert house.client.take() == b"2\r\nok\r\n0\r\n\r\n"


def test_a_caller_without_a_host_gets_the_models() -> None:
    house = Local()
    house.ask(b"GET / HTTP/1.0\r\n\r\n")

    assert house.upstreams.accept().take().startswith(b"GET /base/ HTTP/1.1\r\nHost: 10.0.0.1:81\r\n")


@pytest.mark.parametrize(("connect", "limit"), [(30, 30.0), (7, 7.0), (0, NO_LIMIT)])
def test_a_model_has_its_own_time_to_connect(connect: int, limit: float) -> None:
    house = Local(Timeouts(connect=connect))
    house.ask(ASKED)

    assert house.upstreams.tcpClients[0][3] == limit


def test_a_connection_is_used_again_for_the_models_own_time() -> None:
    house = Local(Timeouts(idle_conn=5))
    house.ask(ASKED)
    server = house.upstreams.accept()
    server.send(ANSWER)
    house.upstreams.advance(4)
    house.ask(ASKED)
    assert house.upstreams.attempts == 0
    server.send(ANSWER)

    house.upstreams.advance(6)

    assert server.is_closed()
    assert house.ended == [Ended.COMPLETE] * 2


@pytest.mark.parametrize("timeouts", [Timeouts(), Timeouts(connect=7)])
def test_connections_to_a_stopped_server_are_forgotten_whatever_their_timeouts(timeouts: Timeouts) -> None:
    house = Local(timeouts)
    house.ask(ASKED)
    server = house.upstreams.accept()
    server.send(ANSWER)

    house.pool.forget("10.0.0.1", 81)

    assert server.is_closed()


def test_usual_timeouts_share_one_pool() -> None:
    house = Local()
    house.ask(ASKED)
    house.upstreams.accept().send(ANSWER)

    assert house.pool.take("10.0.0.1", 81) is not None


def test_a_server_behind_https_is_greeted_in_tls_and_has_its_own_time_for_the_handshake() -> None:
    house = Local(Timeouts(connect=7, tls_handshake=3), proxy="https://127.0.0.1:81")
    house.ask(ASKED)
    assert house.upstreams.tcpClients[0][:2] == ("127.0.0.1", 81)
    assert house.upstreams.tcpClients[0][3] == 7

    server = house.upstreams.accept()
    assert server.take().startswith(TLS_HANDSHAKE)
    house.upstreams.advance(2.9)
    assert house.failures == []
    house.upstreams.advance(0.2)

    assert house.failures == ["cannot speak TLS with 127.0.0.1:81: no answer within 3 s"]
    assert server.is_aborted()


def test_a_server_that_does_not_answer_in_time_is_a_failure() -> None:
    house = Local(Timeouts(response_header=9))
    house.ask(ASKED)
    house.upstreams.accept()

    house.upstreams.advance(10)

    assert house.failures == ["timed out waiting for the response head"]


@pytest.mark.parametrize(
    ("high_water", "held_back"), [(100_000, [False, True]), (1_000_000, [False, False]), (0, [False, False])]
)
def test_a_client_that_reads_slowly_is_held_as_much_for_as_is_said(
    high_water: int, held_back: list[bool]
) -> None:
    house = Local(high_water=high_water)
    house.ask(ASKED)
    upstream = house.upstreams.accept()
    house.client.stall()
    upstream.send(b"HTTP/1.1 200 OK\r\nDate: d\r\nContent-Length: 900000\r\n\r\n")

    states = []
    for _ in range(2):
        upstream.send(bytes(90_000))
        states.append(upstream.is_paused())

    assert states == held_back
