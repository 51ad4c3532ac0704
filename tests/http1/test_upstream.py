"""One connection to an upstream."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock

from llamaswap.http1.framing import Framing, Sink
from llamaswap.http1.heads import ResponseHead
from llamaswap.http1.memory import HeadMemory
from llamaswap.http1.parsing import Malformed, parse_response
from llamaswap.http1.upstream import MAX_HEAD_BYTES, UpstreamConnection
from support.http1_wires import End, split

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKS = b"5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nT: u\r\n\r\n"


class Notes:
    """A receiver, and a home for connections, that writes everything down."""

    def __init__(self) -> None:
        self.memory = HeadMemory(parse_response)
        self.heads: list[ResponseHead] = []
        self.interims: list[int] = []
        self.raw = b""
        self.decoded = b""
        self.ends: list[str | int] = []
        self.kept: list[UpstreamConnection] = []
        self.unwanted: int | None = None

    def interim(self, head: ResponseHead) -> None:
        self.interims.append(head.status)

    def head(self, head: ResponseHead, framing: Framing, *, more: bool) -> Sink | None:
        if head.status == self.unwanted:
            raise Malformed("unwanted")
        self.heads.append(head)
        return self._decode

    def _decode(self, data: bytes) -> None:
        self.decoded += data

    def data(self, data: bytes) -> None:
        assert not self.ends
        self.raw += data

    def ended(self, size: int) -> None:
        self.ends.append(size)

    def failed(self, reason: str, size: int) -> None:
        self.ends.append(reason)

    def drained(self) -> None: ...

    def put_back(self, connection: UpstreamConnection) -> None:
        self.kept.append(connection)

    def remove(self, connection: UpstreamConnection) -> None: ...


def ask(method: bytes = b"GET", header_timeout: float = 0) -> tuple[Notes, UpstreamConnection, End]:
    notes, clock = Notes(), Clock()
    connection = UpstreamConnection(notes, clock, ("127.0.0.1", 80))
    end = End(connection, clock)
    connection.send([b"request ", b"body"], method, notes, header_timeout)
    return notes, connection, end


def test_a_request_is_sent_as_it_is() -> None:
    _, _, end = ask()

    assert end.take() == b"request body"


@given(st.lists(st.integers(0, 200), max_size=15), st.booleans())
def test_any_split_of_a_response_gives_the_same_response(cuts: list[int], chunked: bool) -> None:
    notes, connection, end = ask()
    framing = b"Transfer-Encoding: chunked\r\n\r\n" if chunked else b"Content-Length: 6\r\n\r\n"
    body = CHUNKS if chunked else b"hello!"

    end.send(*split(b"HTTP/1.1 103 Early\r\n\r\n" + HEAD + b"x-Y: z\r\n" + framing + body, cuts))

    assert notes.interims == [103]
    assert notes.heads[0].headers[0] == (b"x-Y", b"z")
    assert (notes.raw, notes.decoded, notes.ends) == (body, b"hello!", [6])
    assert notes.kept == [connection]


@pytest.mark.parametrize(
    ("method", "response"),
    [
        (b"HEAD", HEAD + b"Content-Length: 5\r\n\r\n"),
        (b"HEAD", HEAD + b"Transfer-Encoding: chunked\r\n\r\n"),
        (b"GET", HEAD + b"Content-Length: 0\r\n\r\n"),
        (b"GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        (b"GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
    ],
)
def test_responses_without_a_body_end_with_their_head(method: bytes, response: bytes) -> None:
    notes, connection, end = ask(method)

    end.send(response)

    assert notes.ends == [0]
    assert notes.kept == [connection]


@pytest.mark.parametrize("status", [b"100 Continue", b"103 Early"])
def test_interim_responses_without_an_end_are_a_failure(status: bytes) -> None:
    notes, _, end = ask()
    interim = b"HTTP/1.1 " + status + b"\r\nX: " + b"x" * 1000 + b"\r\n\r\n"

    for _ in range(MAX_HEAD_BYTES // len(interim)):
        end.send(interim)
    assert notes.ends == []
    end.send(interim * 3)

    assert notes.ends == ["malformed response: too many interim responses"]
    assert end.is_aborted()


def test_a_hundred_is_ours_to_swallow() -> None:
    notes, _, end = ask()

    end.send(b"HTTP/1.1 100 Continue\r\n\r\n", HEAD + b"Content-Length: 0\r\n\r\n")

    assert (notes.interims, len(notes.heads), notes.ends) == ([], 1, [0])


@pytest.mark.parametrize(
    "response",
    [
        HEAD + b"Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n",
        HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ],
)
def test_a_connection_in_doubt_is_not_used_again(response: bytes) -> None:
    notes, _, end = ask()

    end.send(response)

    assert (notes.raw, notes.ends, notes.kept) == (b"ok", [2], [])
    assert end.is_closed()


def test_a_connection_whose_request_is_not_all_sent_is_not_used_again() -> None:
    notes, connection, end = ask()
    end.stall()
    connection.outlet.write(b"the rest of a long body")

    end.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")

    assert (notes.ends, notes.kept) == ([0], [])
    assert end.is_aborted()


def test_a_response_may_end_with_its_connection() -> None:
    notes, _, end = ask()
    end.send(HEAD + b"\r\nhel", b"lo")
    assert notes.ends == []

    end.leave()

    assert (notes.raw, notes.ends) == (b"hello", [5])


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (b"", "before the response head was complete"),
        (HEAD, "before the response head was complete"),
        (HEAD + b"Content-Length: 5\r\n\r\nhell", "in the middle of the response"),
        (
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            "in the middle of the response",
        ),
    ],
)
def test_a_connection_that_ends_too_early_is_a_failure(response: bytes, reason: str) -> None:
    notes, _, end = ask()
    end.send(*filter(None, [response]))

    end.leave()

    assert notes.ends == [f"connection closed {reason}"]


def test_a_reset_is_no_way_to_end_a_response() -> None:
    notes, _, end = ask()
    end.send(HEAD + b"\r\nhello")

    end.reset()

    assert notes.ends == ["connection closed in the middle of the response"]


@pytest.mark.parametrize(
    "response",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\nA: b\n\n",
        HEAD + b"X: " + b"a" * 300000,
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        HEAD + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_malformed_responses_are_failures(response: bytes) -> None:
    notes, _, end = ask()

    end.send(response)

    (reason,) = notes.ends
    assert str(reason).startswith("malformed response: ")
    assert end.is_aborted()
    assert notes.kept == []


def test_a_response_the_receiver_does_not_accept_is_malformed() -> None:
    notes, _, end = ask()
    notes.unwanted = 101

    end.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")

    assert notes.ends == ["malformed response: unwanted"]


def test_a_head_that_does_not_come_in_time_is_a_failure() -> None:
    notes, _, end = ask(header_timeout=10)
    end.wire.clock.advance(9)
    end.send(b"HTTP/1.1 103 Early\r\n\r\n")

    end.wire.clock.advance(2)

    assert notes.ends == ["timed out waiting for the response head"]
    assert end.is_aborted()


def test_a_body_may_take_longer_than_its_head() -> None:
    notes, _, end = ask(header_timeout=10)
    end.send(HEAD + b"Content-Length: 2\r\n\r\n")

    end.wire.clock.advance(100)
    end.send(b"ok")

    assert notes.ends == [2]


def test_only_a_used_connection_that_dies_unanswered_is_stale() -> None:
    notes, connection, end = ask()
    end.send(HEAD + b"Content-Length: 0\r\n\r\n")
    connection.rest(90)
    connection.send([b"again"], b"GET", notes)
    end.leave()
    assert connection.stale

    _, fresh, end = ask()
    end.leave()
    assert not fresh.stale


def test_a_used_connection_that_dies_long_after_a_request_is_not_stale() -> None:
    notes, connection, end = ask()
    end.send(HEAD + b"Content-Length: 0\r\n\r\n")
    connection.rest(90)
    connection.send([b"again"], b"POST", notes)

    end.wire.clock.advance(2)
    end.leave()

    assert not connection.stale


def test_an_aborted_connection_says_nothing_more() -> None:
    notes, connection, end = ask()
    end.send(HEAD + b"Content-Length: 9\r\n\r\n")

    connection.abort()
    end.wire.clock.advance(0)
    connection.pause_reading()
    connection.resume_reading()

    assert end.is_aborted()
    assert notes.ends == []


def test_a_closed_connection_is_cut_when_the_upstream_takes_nothing() -> None:
    notes, connection, end = ask()
    end.stall()
    connection.outlet.write(b"last words")

    connection.close()
    assert not end.is_closed()
    end.wire.clock.advance(11)

    assert end.is_aborted()
    assert notes.ends == []
