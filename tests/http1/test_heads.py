"""Heads as values and as bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.http1.heads import (
    Headers,
    RequestHead,
    ResponseHead,
    end_to_end,
    format_request,
    format_response,
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


def test_heads_are_written_in_order_and_case() -> None:
    fields = [(b"hOST", b"h"), (b"X-Empty", b"")]

    assert format_request(b"GET", b"/x?y", fields) == b"GET /x?y HTTP/1.1\r\nhOST: h\r\nX-Empty: \r\n\r\n"
    assert format_response(404, ()) == b"HTTP/1.1 404 Not Found\r\n\r\n"
    assert format_response(200, (), reason=b"Fine") == b"HTTP/1.1 200 Fine\r\n\r\n"
    assert format_response(299, ()) == b"HTTP/1.1 299 \r\n\r\n"


@pytest.mark.parametrize("value", [b"a\r\nSet-Cookie: x", b"a\nb", b"a\rb", b"a\0b"])
def test_no_value_can_smuggle_in_a_line(value: bytes) -> None:
    with pytest.raises(ValueError):
        format_response(307, [(b"Location", value)])
    with pytest.raises(ValueError):
        format_request(b"GET", b"/", [(b"X", value)])
    with pytest.raises(ValueError):
        format_request(b"GET", b"/" + value, [])


def test_a_target_with_a_blank_is_no_target() -> None:
    with pytest.raises(ValueError):
        format_request(b"GET", b"/a b", [])


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
