"""Request bodies."""

from __future__ import annotations

from llamaswap.http1.body import Intake
from llamaswap.http1.framing import Framing


def test_a_chunked_body_is_kept_decoded_and_as_it_came() -> None:
    intake = Intake(Framing.CHUNKED, 0)

    assert intake.feed(b"3;x\r\nab") == b""
    before = intake.complete
    assert intake.feed(b"c\r\n0\r\nT: u\r\n\r\nGET") == b"GET"

    body = intake.body()
    assert (before, intake.complete) == (False, True)
    assert (body.decoded, body.size, body.framing) == (b"abc", 3, Framing.CHUNKED)
    assert b"".join(body.wire) == b"3;x\r\nabc\r\n0\r\nT: u\r\n\r\n"


def test_a_body_of_known_length_is_held_once() -> None:
    intake = Intake(Framing.LENGTH, 4)
    intake.feed(b"ab")
    assert intake.feed(b"cdef") == b"ef"
    body = intake.body()

    assert list(body.wire) == [b"ab", b"cd"]
    assert body.decoded == b"abcd"
    assert body.decoded is body.decoded is body.wire[0]


def test_no_body_is_complete_and_empty() -> None:
    intake = Intake(Framing.NONE, 0)

    assert intake.complete
    assert intake.feed(b"next") == b"next"
    assert (intake.body().decoded, intake.body().size) == (b"", 0)


def test_a_large_body_in_one_piece_is_not_copied() -> None:
    piece = bytes(1 << 20)
    intake = Intake(Framing.LENGTH, len(piece))
    intake.feed(piece)

    assert intake.body().decoded is piece
