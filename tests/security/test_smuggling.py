"""Both sides of the daemon see the same messages: no bytes of one request or response become another."""

from __future__ import annotations

import re
from collections.abc import Iterator

import h11
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from support.http1_wires import split
from support.web_daemon import WebDaemon
from support.web_talk import Talk, Upstream

HIDDEN = b"GET /unload HTTP/1.1\r\nHost: h\r\n\r\n"
POST = b"POST /v1/chat/completions HTTP/1.1"
KIND = b"Content-Type: application/json"
BODY = b'{"model":"a"}'
CHUNKS = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)

FIELDS = [
    b"Host: other",
    b"Content-Length: 13",
    b"Content-Length: 0",
    b"Content-Length: +13",
    b"Content-Length: 13, 13",
    b"Content-Length:\t13",
    b"content-length : 13",
    b"Content_Length: 13",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding:\x0bchunked",
    b"Transfer-Encoding: identity",
    b"transfer-encoding: gzip, chunked",
    b"Transfer-Encoding : chunked",
    b" Transfer-Encoding: chunked",
    b"X: 1\n Content-Length: 50",
    b"X: 1\r\n\tfolded",
    b"X: 1\rTransfer-Encoding: chunked",
    b"X: a\x00b",
    b"Connection: Content-Length, Host, Transfer-Encoding",
    b"Connection: keep-alive, X",
    b"Connection: Upgrade",
    b"Upgrade: h2c",
    b"Expect: 100-continue",
    b"TE: trailers, chunked",
    b"Trailer: Content-Length",
]
BODIES = [
    b"",
    BODY,
    CHUNKS,
    b'd;ext="1"\r\n' + BODY + b"\r\n0\r\n\r\n",
    b"d;a\r\n" + BODY + b"\r\n0\r\nContent-Length: 9\r\n\r\n",
    b"d\n" + BODY + b"\n0\n\n",
    b"0xd\r\n" + BODY + b"\r\n0\r\n\r\n",
    b"-d\r\n" + BODY + b"\r\n0\r\n\r\n",
    b"d\r\n" + BODY + b"0\r\n\r\n",
    b"d;\n" + BODY + b"\r\n0\r\n\r\n",
    b"0000000000000000d\r\n" + BODY + b"\r\n0\r\n\r\n",
]


def requests_in(raw: bytes) -> Iterator[tuple[h11.Request, bytes]]:
    """Read what an upstream got with a parser that shares nothing with ours; each must be whole."""
    while raw:
        server = h11.Connection(h11.SERVER)
        server.receive_data(raw)
        request = server.next_event()
        assert isinstance(request, h11.Request), request
        body = b""
        while isinstance(event := server.next_event(), h11.Data):
            body += bytes(event.data)
        assert isinstance(event, h11.EndOfMessage), event
        raw = server.trailing_data[0]
        yield request, body


def answer_all(daemon: WebDaemon) -> list[bytes]:
    """Let every upstream that is asked answer; returns what each connection was sent."""
    heard = []
    while daemon.reactor.attempts:
        upstream = daemon.upstream()
        heard.append(upstream.heard)
        upstream.answers()
    return heard


@given(
    st.lists(st.sampled_from(FIELDS), min_size=1, max_size=3),
    st.sampled_from(BODIES),
    st.lists(st.integers(0, 400), max_size=3),
)
@settings(max_examples=100, deadline=None)
@example([b"Content-Length: 13", b"Transfer-Encoding: chunked"], CHUNKS, [])
@example([b"Transfer-Encoding: chunked"], BODIES[3], [])
@example([b"Transfer-Encoding: chunked"], BODIES[4], [])
@example([b"Content-Length: 13"], BODY, [])
def test_an_upstream_reads_the_requests_that_were_answered_and_no_others(
    fields: list[bytes], body: bytes, cuts: list[int]
) -> None:
    daemon = WebDaemon()
    daemon.warm("a").dies()
    talk = Talk(daemon.connect())

    words = b"\r\n".join([POST, b"Host: h", KIND, *fields, b"", b""]) + body + HIDDEN
    talk.end.send(*split(words, cuts))
    heard = [request for raw in answer_all(daemon) for request in requests_in(raw)]

    unloaded = bool(daemon.child.signals)
    if not talk.raw:
        assert heard == [] and not unloaded
        return
    if talk.status != 200:
        assert heard == []
        if talk.status in (400, 413, 501):
            assert not unloaded, "what was hidden behind a request that could not be read"
        return
    ((request, sent),) = heard
    names = [name for name, _ in request.headers]
    assert names.count(b"content-length") + names.count(b"transfer-encoding") == 1
    assert names.count(b"host") == 1
    assert sent == BODY
    assert request.target == b"/v1/chat/completions"


_FRAMES = re.compile(rb"(?i)content-length|transfer-encoding|host")  # see the test behind this one


@given(st.binary(max_size=120), st.lists(st.integers(0, 200), max_size=3))
@settings(max_examples=50, deadline=None)
def test_no_bytes_reach_an_upstream_but_as_a_whole_request(noise: bytes, cuts: list[int]) -> None:
    assume(not _FRAMES.search(noise))
    daemon = WebDaemon()
    daemon.warm("a").dies()
    head = POST + b"\r\nHost: h\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"

    Talk(daemon.connect()).end.send(*split(head + CHUNKS[:-2] + noise + b"\r\n\r\n" + HIDDEN, cuts))

    for raw in answer_all(daemon):
        for _, sent in requests_in(raw):
            assert sent == BODY


TRAILERS = [
    "Content-Length: 40",
    "Transfer-Encoding: chunked",
    "Host: other",
    "Authorization: x",
    "X-Api-Key: x",
    "Content_Length: 40",
    "Keep-Alive: timeout=9",
    "Proxy-Connection: close",
    "Proxy-Authenticate: Basic",
    "WWW-Authenticate: Basic",
    "Via: 1.1 other",
    "X-Real-IP: 127.0.0.1",
    "X-Forwarded-Client-Cert: x",
    "X_Api_Key: x",
    "X-Goog-Api-Key: x",
    "X-Auth-Token: x",
    "Access-Control-Allow-Origin: *",
]


@pytest.mark.parametrize("field", TRAILERS)
def test_a_trailer_that_frames_routes_or_opens_is_refused(field: str) -> None:
    daemon = WebDaemon()
    daemon.warm("a").dies()
    talk = Talk(daemon.connect())

    head = POST + b"\r\nHost: h\r\n" + KIND + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
    talk.end.send(head + CHUNKS[:-2] + field.encode() + b"\r\n\r\n")

    assert not daemon.reactor.attempts
    assert talk.status == 400


@pytest.mark.parametrize("field", TRAILERS)
def test_neither_may_an_answer_have_such_a_trailer(field: str) -> None:
    daemon = WebDaemon()
    asked = daemon.chat()
    daemon.ready()
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"

    daemon.upstream().end.send(head, b"0\r\n" + field.encode() + b"\r\n\r\n")

    assert asked.raw.endswith(b"\r\n\r\n2\r\n{}\r\n")
    assert asked.end.is_closed()


@pytest.mark.parametrize("field", ["Digest: x", "Server-Timing: a", "X-Tokens: 3", "Hosts: 2", "X-Via: y"])
def test_a_trailer_that_does_none_of_that_passes(field: str) -> None:
    daemon = WebDaemon()
    daemon.warm("a").dies()
    talk = Talk(daemon.connect())

    head = POST + b"\r\nHost: h\r\n" + KIND + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
    talk.end.send(head + CHUNKS[:-2] + field.encode() + b"\r\n\r\n")

    assert field.encode() in daemon.upstream().heard


# The other direction

SECRET = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
RESPONSES = {
    "more than it says": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}" + SECRET,
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 40\r\n\r\n{}" + SECRET,
    "a length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"
    + SECRET,
    "a list of lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\n{}" + SECRET,
    "another coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + SECRET,
    "a folded field": b"HTTP/1.1 200 OK\r\nX: 1\r\n Content-Length: 0\r\nContent-Length: 2\r\n\r\n{}"
    + SECRET,
    "a blank before a colon": b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\n{}" + SECRET,
    "bare line feeds": b"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}" + SECRET,
    "bare line feeds of chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n"
    + SECRET,
    "a carriage return in a field": b"HTTP/1.1 200 OK\r\nX: 1\rSet-Cookie: x\r\nContent-Length: 2\r\n\r\n{}"
    + SECRET,
    "an endless reason": b"HTTP/1.1 200 O\rSet-Cookie: x\r\nContent-Length: 2\r\n\r\n{}" + SECRET,
    "an upgrade that nobody asked for": b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"
    + SECRET,
    "a second answer to a first": b"HTTP/1.1 204 No\r\n\r\n" + SECRET,
    "an old version": b"HTTP/0.9 200 OK\r\nContent-Length: 2\r\n\r\n{}" + SECRET,
}


def responses_in(raw: bytes) -> list[tuple[int, bytes]]:
    """Read what a client got; what is cut off counts as no answer."""
    found = []
    while raw:
        client = h11.Connection(h11.CLIENT)
        client.send(h11.Request(method="POST", target="/", headers=[("Host", "h"), ("Content-Length", "0")]))
        client.send(h11.EndOfMessage())
        client.receive_data(raw)
        head = client.next_event()
        assert isinstance(head, h11.Response), head
        assert b"set-cookie" not in [name for name, _ in head.headers]
        body = b""
        while isinstance(event := client.next_event(), h11.Data):
            body += bytes(event.data)
        if event is h11.NEED_DATA:
            break
        found.append((head.status_code, body))
        raw = client.trailing_data[0]
    return found


@pytest.mark.parametrize("response", RESPONSES.values(), ids=RESPONSES)
@pytest.mark.parametrize("cuts", [[], [20], [60]], ids=["in one piece", "in two", "in two others"])
def test_a_forged_answer_reaches_nobody(response: bytes, cuts: list[int]) -> None:
    daemon = WebDaemon()
    first = daemon.chat()
    daemon.ready()
    upstream = daemon.upstream()
    upstream.end.send(*split(response, cuts))

    second = daemon.chat()
    assert upstream.end.is_closed(), "it must not be asked again"
    daemon.reactor.advance(1.0)
    if daemon.reactor.attempts:
        Upstream(daemon.reactor.accept()).answers(b'{"own":1}')

    assert all(b"forged" not in body for _, body in responses_in(first.raw))
    assert len(responses_in(first.raw)) <= 1
    assert responses_in(second.raw) == [(200, b'{"own":1}')]


def test_a_line_in_an_upstreams_field_never_becomes_a_field_of_ours() -> None:
    daemon = WebDaemon()
    asked = daemon.chat()
    daemon.ready()
    daemon.upstream().end.send(
        b"HTTP/1.1 200 OK\r\nX: a%0d%0aSet-Cookie: x\xc2\x85Set-Cookie: y\r\nContent-Length: 2\r\n\r\n{}"
    )

    assert asked.status == 200
    assert "set-cookie" not in asked.headers
