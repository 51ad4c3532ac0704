"""What a model's server sees of its callers, and what they see of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.http1.body import Body
from llamaswap.http1.framing import Framing
from llamaswap.http1.heads import RequestHead, ResponseHead
from llamaswap.proxying.local import text, unbuffered, upstream_fields

Pairs = list[tuple[bytes, bytes]]

NOTHING = Body(Framing.NONE, [], [], 0)
SEVEN = Body(Framing.LENGTH, [b"1234567"], [b"1234567"], 7)
CHUNKS = Body(Framing.CHUNKED, [b"1"], [b"1\r\n1\r\n0\r\n\r\n"], 1)


def seen(headers: Pairs, *, body: Body = NOTHING, client: str = "", metered: bool = False) -> Pairs:
    """What the upstream sees of these header fields."""
    head = RequestHead(b"POST", b"/", (1, 1), tuple(headers))
    return upstream_fields(head, body, client, metered=metered)


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
