"""Bytes to heads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.http1.parsing import MOST_FIELDS, HeadBuffer, Malformed, parse_request, parse_response
from support.http1_wires import split

HEAD = b"POST /v1/x?y=1 HTTP/1.1\r\nHost: h:80\r\nX-Odd:  a\tb \r\nx-empty:\r\nContent-Length: 3\r\n\r\n"


def feed_singly(buffer: HeadBuffer, data: bytes) -> None:
    for byte in data:
        buffer.feed(bytes((byte,)))


def request(*lines: bytes, first: bytes = b"GET / HTTP/1.1") -> bytes:
    return b"\r\n".join((first, *lines, b"", b""))


def test_a_head_keeps_order_case_and_repetition() -> None:
    parsed = parse_request(HEAD.replace(b"X-Odd", b"x-EMPTY"))

    assert (parsed.method, parsed.target, parsed.version) == (b"POST", b"/v1/x?y=1", (1, 1))
    assert parsed.headers == (
        (b"Host", b"h:80"),
        (b"x-EMPTY", b"a\tb"),
        (b"x-empty", b""),
        (b"Content-Length", b"3"),
    )
    assert (parsed.length, parsed.kin.chunked, parsed.kin.keep_alive) == (3, False, True)


@given(st.lists(st.integers(0, 200), max_size=12), st.sampled_from([b"", b"abc", b"\r\n\r\nGET"]))
def test_any_split_of_a_head_gives_the_same_head(cuts: list[int], behind: bytes) -> None:
    buffer = HeadBuffer(1000)
    rest = b""
    heads: list[bytes] = []
    for piece in split(b"\r\n\r\n" + HEAD + behind, cuts):
        found = buffer.feed(piece) if not heads else None
        if found is not None:
            heads.append(found[0])
            rest = found[1]
        elif heads:
            rest += piece

    assert heads == [HEAD]
    assert rest == behind
    assert not buffer.begun


def test_a_head_may_be_as_long_as_the_limit_and_no_longer() -> None:
    assert HeadBuffer(len(HEAD)).feed(HEAD) == (HEAD, b"")

    for data in (HEAD, HEAD[:-1]):
        with pytest.raises(Malformed) as caught:
            HeadBuffer(len(HEAD) - 2).feed(data)
        assert caught.value.status == 431


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\nHost: h\n\n", b"GET / HTTP/1.1\rHost", b"\x16\x03\x01\x00\xf8"]
)
def test_what_can_never_become_a_head_is_refused_before_its_end(data: bytes) -> None:
    with pytest.raises(Malformed):
        HeadBuffer(1000).feed(data)
    with pytest.raises(Malformed):
        feed_singly(HeadBuffer(1000), data + b"x")


BAD_REQUESTS = {
    "length and chunks": request(b"Host: h", b"Content-Length: 5", b"Transfer-Encoding: chunked"),
    "chunks and length": request(b"Host: h", b"Transfer-Encoding: chunked", b"Content-Length: 5"),
    "two lengths": request(b"Host: h", b"Content-Length: 5", b"Content-Length: 6"),
    "two equal lengths": request(b"Host: h", b"Content-Length: 5", b"Content-Length: 5"),
    "length with plus": request(b"Host: h", b"Content-Length: +5"),
    "length list": request(b"Host: h", b"Content-Length: 5, 5"),
    "negative length": request(b"Host: h", b"Content-Length: -5"),
    "empty length": request(b"Host: h", b"Content-Length: "),
    "hex length": request(b"Host: h", b"Content-Length: 0x5"),
    "length with blank": request(b"Host: h", b"Content-Length: 5 5"),
    "endless length": request(b"Host: h", b"Content-Length: 99999999999999999999999"),
    "gzip before chunked": request(b"Host: h", b"Transfer-Encoding: gzip, chunked"),
    "chunked before gzip": request(b"Host: h", b"Transfer-Encoding: chunked, gzip"),
    "only gzip": request(b"Host: h", b"Transfer-Encoding: gzip"),
    "identity": request(b"Host: h", b"Transfer-Encoding: identity"),
    "empty coding": request(b"Host: h", b"Transfer-Encoding:"),
    "chunked twice": request(b"Host: h", b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"),
    "chunked list": request(b"Host: h", b"Transfer-Encoding: chunked, chunked"),
    "xchunked": request(b"Host: h", b"Transfer-Encoding: xchunked"),
    "vertical tab chunked": request(b"Host: h", b"Transfer-Encoding: \x0bchunked"),
    "chunked in 1.0": request(b"Host: h", b"Transfer-Encoding: chunked", first=b"POST / HTTP/1.0"),
    "obs-fold": request(b"Host: h", b"X: a", b" b"),
    "obs-fold with tab": request(b"Host: h", b"X: a", b"\tb"),
    "fold at once": request(b" Host: h"),
    "blank before colon": request(b"Host: h", b"Content-Length : 5"),
    "tab before colon": request(b"Host: h", b"X\t: 5"),
    "bare lf": request(b"Host: h", b"X: a\nY: b"),
    "bare cr": request(b"Host: h", b"X: a\rY: b"),
    "nul in value": request(b"Host: h", b"X: a\0b"),
    "control in value": request(b"Host: h", b"X: a\x01b"),
    "delete in value": request(b"Host: h", b"X: a\x7fb"),
    "nul in name": request(b"Host: h", b"X\0: a"),
    "no colon": request(b"Host: h", b"X"),
    "no name": request(b"Host: h", b": x"),
    "name with parenthesis": request(b"Host: h", b"X(y): x"),
    "name beyond ascii": request(b"Host: h", b"X\xe4: x"),
    "no host": request(b"X: y"),
    "two hosts": request(b"Host: h", b"Host: h"),
    "two hosts in 1.0": request(b"Host: h", b"Host: i", first=b"GET / HTTP/1.0"),
    "host with blank": request(b"Host: a b"),
    "host with slash": request(b"Host: a/b"),
    "host with user": request(b"Host: a@b"),
    "no method": request(b"Host: h", first=b" / HTTP/1.1"),
    "small method": request(b"Host: h", first=b"get / HTTP/1.1"),
    "unknown method": request(b"Host: h", first=b"GE\x01T / HTTP/1.1"),
    "two blanks": request(b"Host: h", first=b"GET  / HTTP/1.1"),
    "tab": request(b"Host: h", first=b"GET\t/ HTTP/1.1"),
    "blank at the end": request(b"Host: h", first=b"GET / HTTP/1.1 "),
    "control in target": request(b"Host: h", first=b"GET /\x01 HTTP/1.1"),
    "nul in target": request(b"Host: h", first=b"GET /\0 HTTP/1.1"),
    "method beyond ascii": request(b"Host: h", first=b"G\xc3\x84T / HTTP/1.1"),
    "target without slash": request(b"Host: h", first=b"GET x HTTP/1.1"),
    "no target": request(b"Host: h", first=b"GET HTTP/1.1"),
    "no version": request(b"Host: h", first=b"GET /"),
    "small version": request(b"Host: h", first=b"GET / http/1.1"),
    "other protocol": request(b"Host: h", first=b"GET / RTSP/1.0"),
}


@pytest.mark.parametrize("raw", BAD_REQUESTS.values(), ids=BAD_REQUESTS.keys())
def test_a_request_that_two_parsers_could_read_in_two_ways_is_refused(raw: bytes) -> None:
    with pytest.raises(Malformed) as caught:
        parse_request(raw)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("first", "status"),
    [
        (b"GET / HTTP/2.0", 505),
        (b"GET / HTTP/1.2", 505),
        (b"GET / HTTP/0.9", 505),
        (b"CONNECT h:80 HTTP/1.1", 405),
    ],
)
def test_what_is_understood_but_not_served_says_so(first: bytes, status: int) -> None:
    with pytest.raises(Malformed) as caught:
        parse_request(request(b"Host: h", first=first))
    assert caught.value.status == status


def test_a_head_has_so_many_fields_and_no_more() -> None:
    fields = [b"Host: h", *([b"a:"] * (MOST_FIELDS - 1))]

    assert len(parse_request(request(*fields)).headers) == MOST_FIELDS
    assert len(parse_response(request(*fields, first=b"HTTP/1.1 200 OK")).headers) == MOST_FIELDS
    with pytest.raises(Malformed) as caught:
        parse_request(request(*fields, b"a:"))
    assert caught.value.status == 431
    with pytest.raises(Malformed):
        parse_response(request(*fields, b"a:", first=b"HTTP/1.1 200 OK"))


@pytest.mark.parametrize(
    ("raw", "keep_alive"),
    [
        (request(b"Host: h"), True),
        (request(b"Host: h", b"Connection: close"), False),
        (request(b"Host: h", b"Connection: x, CLOSE"), False),
        (request(b"Host: h", b"Connection: keep-alive", b"Connection: close"), False),
        (request(first=b"GET / HTTP/1.0"), False),
        (request(b"Connection: Keep-Alive", first=b"GET / HTTP/1.0"), True),
    ],
)
def test_keep_alive_is_the_default_of_the_version_unless_told_otherwise(raw: bytes, keep_alive: bool) -> None:
    assert parse_request(raw).kin.keep_alive is keep_alive


def test_good_requests_of_all_kinds_are_read() -> None:
    chunked = parse_request(
        request(b"Host: [::1]:8080", b"Transfer-Encoding: Chunked", b"Expect: 100-Continue")
    )
    assert (chunked.kin.chunked, chunked.length, chunked.kin.expects_continue) == (True, None, True)
    assert parse_request(request(b"Host:")).get(b"host") == b""
    assert parse_request(request(b"Host: h", b"X: \xc3\xa4")).get(b"x") == b"\xc3\xa4"
    assert parse_request(request(b"Host: h", first=b"OPTIONS * HTTP/1.1")).path == b"*"
    assert parse_request(request(b"Host: h", first=b"GET http://h/x HTTP/1.1")).path == b"/x"
    assert parse_request(request(b"Host: h", b"Connection: upgrade", b"Upgrade: websocket")).length is None
    assert not parse_request(request(b"Expect: 100-continue", first=b"POST / HTTP/1.0")).kin.expects_continue


@pytest.mark.parametrize(
    ("target", "escaped"),
    [
        ("/upstream/größe/x?q=模".encode(), b"/upstream/gr%C3%B6%C3%9Fe/x?q=%E6%A8%A1"),
        (b"/\xff%2F\x80", b"/%FF%2F%80"),
    ],
)
def test_a_target_beyond_ascii_is_escaped_as_its_client_should_have_done(
    target: bytes, escaped: bytes
) -> None:
    head = parse_request(request(b"Host: h", b"X: \xc3\xa4", first=b"GET %b HTTP/1.1" % target))

    assert head.target == escaped
    assert head.get(b"x") == b"\xc3\xa4"


@pytest.mark.parametrize(
    ("raw", "status", "reason"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", 200, b"OK"),
        (b"HTTP/1.1 200 \r\n\r\n", 200, b""),
        (b"HTTP/1.1 200\r\n\r\n", 200, b""),
        (b"HTTP/1.0 404 Not  at all\r\n\r\n", 404, b"Not  at all"),
    ],
)
def test_status_lines_are_read(raw: bytes, status: int, reason: bytes) -> None:
    head = parse_response(raw)

    assert (head.status, head.reason) == (status, reason)


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_a_response_that_cannot_be_trusted_is_refused(raw: bytes) -> None:
    with pytest.raises(Malformed):
        parse_response(raw)


def test_a_response_says_how_its_body_ends() -> None:
    assert parse_response(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").length == 0
    assert parse_response(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").kin.chunked
    assert parse_response(b"HTTP/1.1 200 OK\r\n\r\n").length is None
    assert not parse_response(b"HTTP/1.0 200 OK\r\n\r\n").kin.keep_alive
