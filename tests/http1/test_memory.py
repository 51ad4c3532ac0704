"""Heads that are remembered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.http1.heads import RequestHead
from llamaswap.http1.memory import MOST_BYTES, HeadMemory
from llamaswap.http1.parsing import Malformed, parse_request, parse_response


class Counting:
    """A parser that counts."""

    def __init__(self) -> None:
        self.parsed = 0

    def __call__(self, raw: bytes) -> RequestHead:
        self.parsed += 1
        return parse_request(raw)


def request(*lines: bytes) -> bytes:
    return b"\r\n".join((b"POST / HTTP/1.1", b"Host: h", *lines, b"", b""))


def test_a_head_is_read_twice_and_then_known_whatever_its_length() -> None:
    parse = Counting()
    memory = HeadMemory(parse)

    heads = [memory.read(request(b"Content-Length: %d" % length)) for length in (1, 20, 300, 300, 4000)]

    assert parse.parsed == 2
    assert [head.length for head in heads] == [1, 20, 300, 300, 4000]
    assert heads[4].headers == ((b"Host", b"h"), (b"Content-Length", b"4000"))
    assert len({id(head.kin) for head in heads[1:]}) == 1


def test_a_head_without_a_length_is_known_too() -> None:
    parse = Counting()
    memory = HeadMemory(parse)

    assert len({memory.read(request(b"A: b")) for _ in range(4)}) == 1
    assert parse.parsed == 2


@pytest.mark.parametrize(
    "odd",
    [
        b"Content-Length: ",
        b"Content-Length: \n",
        b"Content-Length: +5",
        b"Content-Length: 5, 5",
        b"Content-Length: " + b"9" * 30,
        b"Content-Length: 5\r\ncontent-length: 5",
        b"Content-Length : 5",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked",
    ],
)
def test_no_check_is_passed_by_resembling_what_is_known(odd: bytes) -> None:
    memory = HeadMemory(parse_request)
    for _ in range(3):
        memory.read(request(b"Content-Length: 5"))
        memory.read(request())

    for _ in range(3):
        with pytest.raises(Malformed):
            memory.read(request(odd))


def test_heads_that_never_come_again_push_out_no_other() -> None:
    parse = Counting()
    memory = HeadMemory(parse, most=4)
    memory.read(request(b"Same: x"))
    memory.read(request(b"Same: x"))
    parse.parsed = 0

    for number in range(100):
        memory.read(request(b"Id: %d" % number))
        memory.read(request(b"Same: x"))

    assert parse.parsed == 100


def test_it_holds_no_more_than_it_may() -> None:
    memory = HeadMemory(parse_request, most=4)

    for number in range(20):
        head = request(b"Id: %d" % number)
        assert memory.read(head) == memory.read(head) == memory.read(head)

    parse = Counting()
    large = HeadMemory(parse)
    for _ in range(5):
        large.read(request(b"X: " + bytes(b"x" * MOST_BYTES)))
    assert parse.parsed == 5


Head = tuple[list[tuple[bytes, bytes]], bytes]

NAMES = st.sampled_from(
    [b"Content-Length", b"content-length", b"CONTENT-LENGTH", b"Connection", b"Expect", b"X-A", b"Host"]
)
VALUES = st.sampled_from(
    [b"", b"0", b"5", b"007", b"5 ", b" 5", b"5,5", b"1" * 19, b"9" * 20, b"close", b"100-continue", b"h"]
)
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=3)


@given(st.lists(st.tuples(FIELDS, st.sampled_from([b": ", b":", b":  "])), min_size=1, max_size=6))
def test_who_remembers_says_the_same_as_who_does_not(
    heads: list[tuple[list[tuple[bytes, bytes]], bytes]],
) -> None:
    memory = HeadMemory(parse_request, most=3)
    for fields, colon in heads * 3:
        raw = request(*(name + colon + value for name, value in fields))
        assert said(memory.read, raw) == said(parse_request, raw)


@given(st.lists(st.tuples(st.integers(200, 202), st.integers(0, 30), st.booleans()), min_size=1, max_size=20))
def test_the_same_holds_of_responses(heads: list[tuple[int, int, bool]]) -> None:
    memory = HeadMemory(parse_response, most=3)
    for status, length, dated in heads:
        date = b"Date: d\r\n" if dated else b""
        raw = b"HTTP/1.1 %d OK\r\nContent-Length: %d\r\n%b\r\n" % (status, length, date)
        head = memory.read(raw)
        assert head == parse_response(raw)
        assert (head.get(b"date"), head.length) == (b"d" if dated else None, length)


def said(read: object, raw: bytes) -> object:
    """All that a reader makes of these bytes."""
    assert callable(read)
    try:
        head = read(raw)
    except Malformed as error:
        return error.reason, error.status
    assert isinstance(head, RequestHead)
    kin = head.kin
    names = (b"content-length", b"connection", b"expect", b"x-a", b"host")
    told = [head.get(name) for name in names]
    return head, head.length, head.length_text, kin.keep_alive, kin.expects_continue, kin.chunked, told
