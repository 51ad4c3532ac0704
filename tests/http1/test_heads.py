"""Heads as values and as bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.http1.heads import (
    HOP_BY_HOP,
    Headers,
    RequestHead,
    ResponseHead,
    crossing_fields,
    end_to_end,
    has_no_body,
    upgrade_headers,
)


def target(text: bytes) -> RequestHead:
    return RequestHead(b"GET", text, (1, 1), ())


@pytest.mark.parametrize(
    ("sent", "path", "query"),
    [
        (b"/v1/models", b"/v1/models", None),
        (b"/v1/models?", b"/v1/models", b""),
        (b"/a%2Fb//c?x=%zz&y=?", b"/a%2Fb//c", b"x=%zz&y=?"),
        (b"http://host:80/p?q", b"/p", b"q"),
        (b"http://host", b"/", None),
        (b"http://host?q=/x", b"/", b"q=/x"),
        (b"/redirect?to=http://elsewhere/x", b"/redirect", b"to=http://elsewhere/x"),
        (b"*", b"*", None),
    ],
)
def test_path_and_query_are_the_bytes_that_were_sent(sent: bytes, path: bytes, query: bytes | None) -> None:
    assert (target(sent).path, target(sent).query) == (path, query)


def test_a_field_is_found_whatever_its_case_and_the_first_one_wins() -> None:
    headers: Headers = ((b"X-Model", b"one"), (b"x-model", b"two"))

    assert RequestHead(b"GET", b"/", (1, 1), headers).get(b"x-model") == b"one"
    assert ResponseHead(200, b"OK", (1, 1), headers).get(b"x-other") is None


@pytest.mark.parametrize(
    "name",
    [
        b"Connection",
        b"Proxy-Connection",
        b"Keep-Alive",
        b"Proxy-Authenticate",
        b"Proxy-Authorization",
        b"TE",
        b"Trailer",
        b"Transfer-Encoding",
        b"UPGRADE",
    ],
)
def test_fields_of_one_hop_are_dropped(name: bytes) -> None:
    assert end_to_end(((b"A", b"1"), (name, b"x"), (b"b", b"2"))) == ((b"A", b"1"), (b"b", b"2"))


def test_what_connection_lists_is_dropped_with_it() -> None:
    headers: Headers = ((b"X-Secret", b"1"), (b"Connection", b"close, x-SECRET"), (b"X-Open", b"2"))

    assert end_to_end(headers) == ((b"X-Open", b"2"),)


def test_connection_cannot_take_away_the_host_or_the_length() -> None:
    headers: Headers = ((b"Host", b"h"), (b"Connection", b"host, content-length"), (b"Content-Length", b"3"))

    assert end_to_end(headers) == ((b"Host", b"h"), (b"Content-Length", b"3"))


@pytest.mark.parametrize("connection", [(), ((b"Connection", b"TE"),)])
def test_te_survives_as_trailers_only(connection: Headers) -> None:
    assert end_to_end((*connection, (b"te", b"gzip, Trailers;q=0.5"))) == ((b"te", b"trailers"),)
    assert end_to_end((*connection, (b"te", b"gzip"))) == ()


def test_an_upgrade_needs_both_fields() -> None:
    both: Headers = ((b"connection", b"keep-alive, Upgrade"), (b"upgrade", b"websocket"))

    assert upgrade_headers(both) == ((b"Connection", b"Upgrade"), (b"Upgrade", b"websocket"))
    assert upgrade_headers(both[1:]) == upgrade_headers(both[:1]) == ()


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"A", b"x-B", b"te", b"TE", b"Connection", b"connection", b"Upgrade"]),
            st.sampled_from(
                [b"", b"close", b"Keep-Alive", b"te", b"a, x-b", b"trailers", b"gzip;q=1, trailers"]
            ),
        ),
        max_size=5,
    )
)
def test_the_quick_way_over_a_hop_takes_the_same_fields(headers: list[tuple[bytes, bytes]]) -> None:
    head = ResponseHead(200, b"OK", (1, 1), tuple(headers))

    assert crossing_fields(head) == list(end_to_end(head.headers))
    assert crossing_fields(head, HOP_BY_HOP | {b"a"}) == [
        pair for pair in end_to_end(head.headers) if pair[0].lower() != b"a"
    ]


def test_some_statuses_never_have_a_body() -> None:
    assert [status for status in (101, 103, 200, 204, 206, 304, 404) if has_no_body(status)] == [
        101,
        103,
        204,
        304,
    ]


@given(st.lists(st.tuples(st.sampled_from([b"A", b"X-b", b"te", b"Connection"]), st.binary(max_size=9))))
def test_what_survives_a_hop_survives_the_next(headers: list[tuple[bytes, bytes]]) -> None:
    once = end_to_end(tuple(headers))

    assert end_to_end(once) == once
    assert not [name for name, _ in once if name == b"Connection"]
