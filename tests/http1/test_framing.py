"""Where bodies end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.http1.framing import (
    UNFINISHED,
    ChunkedReader,
    CloseReader,
    Framing,
    LengthReader,
    body_reader,
)
from llamaswap.http1.parsing import Malformed
from support.http1_wires import split

CHUNKED = b'5;a=b;c="d e"\r\nhello\r\n000A \t;x\r\n0123456789\r\n1\r\n!\r\n0\r\nX-Sum: 1\r\nx-t:\r\n\r\n'
DECODED = b"hello0123456789!"


def read(data: bytes, cuts: list[int]) -> tuple[bytes, int | None]:
    """Decoded bytes, and how many of `data` belonged to the body."""
    pieces: list[bytes] = []
    reader = ChunkedReader(pieces.append)
    before = 0
    for piece in split(data, cuts):
        end = reader.feed(piece)
        if end != UNFINISHED:
            assert reader.size == sum(map(len, pieces))
            return b"".join(pieces), before + end
        before += len(piece)
    return b"".join(pieces), None


@given(st.lists(st.integers(0, 200), max_size=20), st.sampled_from([b"", b"GET / HTTP/1.1\r\n"]))
def test_any_split_of_chunks_gives_the_same_body_and_the_same_end(cuts: list[int], behind: bytes) -> None:
    assert read(CHUNKED + behind, cuts) == (DECODED, len(CHUNKED))


def test_chunks_byte_by_byte() -> None:
    assert read(CHUNKED, list(range(len(CHUNKED)))) == (DECODED, len(CHUNKED))


BAD_CHUNKS = {
    "no size": b"\r\n",
    "letters": b"xyz\r\n",
    "plus": b"+5\r\nhello\r\n0\r\n\r\n",
    "minus": b"-5\r\nhello\r\n",
    "prefix": b"0x5\r\nhello\r\n",
    "underscore": b"1_0\r\n",
    "blank before": b" 5\r\nhello\r\n",
    "blank behind": b"5 \r\nhello\r\n",
    "too large": b"1" + b"0" * 15 + b"\r\n",
    "bare lf after size": b"5\nhello\r\n",
    "bare cr after size": b"5\rhello\r\n",
    "bare cr in extension": b"5;a\rb\r\nhello\r\n",
    "nul in extension": b"5;a\0\r\nhello\r\n",
    "extension without semicolon": b"5 a=b\r\nhello\r\n",
    "size too small": b"4\r\nhello\r\n0\r\n\r\n",
    "size too large": b"6\r\nhello\r\n0\r\n\r\n",
    "bare lf after data": b"5\r\nhello\n0\r\n\r\n",
    "no crlf after data": b"5\r\nhello0\r\n\r\n",
    "trailer without colon": b"0\r\nabc\r\n\r\n",
    "trailer with blank before colon": b"0\r\na : b\r\n\r\n",
    "trailer folded": b"0\r\na: b\r\n c\r\n\r\n",
    "trailer with bare lf": b"0\r\na: b\n\r\n",
    "end with bare lf": b"0\r\n\n",
    "endless extension": b"5;" + b"a" * 5000,
    "endless trailer": b"0\r\n" + b"a: b\r\n" * 20000,
}


@pytest.mark.parametrize("data", BAD_CHUNKS.values(), ids=BAD_CHUNKS.keys())
def test_broken_chunks_are_refused_however_they_arrive(data: bytes) -> None:
    with pytest.raises(Malformed):
        read(data, [])
    with pytest.raises(Malformed):
        read(data, list(range(min(len(data), 6000))))


def test_a_size_that_goes_wrong_is_refused_before_its_line_ends() -> None:
    with pytest.raises(Malformed):
        ChunkedReader().feed(b"GET / HTTP/1.1")


@given(st.integers(1, 50), st.lists(st.integers(0, 200), max_size=9))
def test_a_length_is_counted_over_any_split(length: int, cuts: list[int]) -> None:
    data = bytes(range(60))
    pieces: list[bytes] = []
    reader = LengthReader(length, pieces.append)
    before = 0
    for piece in split(data, cuts):
        end = reader.feed(piece)
        if end != UNFINISHED:
            assert before + end == length
            break
        before += len(piece)

    assert b"".join(pieces) == data[:length]
    assert reader.size == length


def test_a_body_that_ends_by_closing_never_ends_by_itself() -> None:
    reader = CloseReader()

    assert reader.feed(b"abc") == reader.feed(b"0\r\n\r\n") == UNFINISHED
    assert reader.size == 8


def test_there_is_nothing_to_read_without_a_body() -> None:
    assert body_reader(Framing.NONE, 0, None) is None
    assert body_reader(Framing.LENGTH, 0, None) is None
    assert isinstance(body_reader(Framing.LENGTH, 1, None), LengthReader)
    assert isinstance(body_reader(Framing.CHUNKED, 0, None), ChunkedReader)
    assert isinstance(body_reader(Framing.UNTIL_CLOSE, 0, None), CloseReader)
