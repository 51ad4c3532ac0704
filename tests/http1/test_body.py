"""Request bodies."""

from __future__ import annotations

import tracemalloc

import pytest

from llamaswap.http1.body import MOST_BODY_BYTES, MOST_CHUNKING_BYTES, Body, Intake, NoRoom, Room, TooChopped
from llamaswap.http1.framing import Framing
from llamaswap.http1.parsing import Malformed

MIB = 1 << 20


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

    assert list(body.wire) == [b"abcd"]
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


def test_pieces_are_joined_when_they_are_asked_for() -> None:
    body = Body(Framing.LENGTH, [b"ab", b"cd"], [b"ab", b"cd"], 4)

    assert body.decoded == b"abcd"
    assert body.decoded is body.decoded
    assert list(body.wire) == [b"ab", b"cd"]


def test_a_large_body_is_never_in_memory_twice() -> None:
    intake = Intake(Framing.LENGTH, 40 * MIB)
    tracemalloc.start()
    try:
        for _ in range(640):
            intake.feed(bytes(65536))
        size = len(intake.body().decoded)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert size == 40 * MIB
    assert most < 50 * MIB


def test_a_body_that_announces_too_much_is_refused_before_it_comes() -> None:
    Intake(Framing.LENGTH, 10, 10)

    with pytest.raises(Malformed) as caught:
        Intake(Framing.LENGTH, 11, 10)

    assert caught.value.status == 413


def test_a_body_that_grows_too_large_is_refused_before_it_is_kept() -> None:
    intake = Intake(Framing.CHUNKED, 0, 16)
    intake.feed(b"6\r\nhello!\r\n")

    with pytest.raises(Malformed) as caught:
        intake.feed(b"1\r\n!\r\n")

    assert caught.value.status == 413
    assert intake.held_bytes == 11
    assert not intake.complete


@pytest.mark.parametrize("chunk", [b"1\r\n.\r\n", b"1;" + b"x" * 4000 + b"\r\n.\r\n"], ids=["tiny", "wordy"])
def test_a_body_in_chunks_that_are_mostly_framing_is_refused(chunk: bytes) -> None:
    intake = Intake(Framing.CHUNKED, 0)
    some = chunk * (65536 // len(chunk))

    def send_on() -> None:
        for _ in range(100):
            intake.feed(some)

    with pytest.raises(TooChopped) as caught:
        send_on()

    assert caught.value.status == 400
    assert 0.9 * MOST_CHUNKING_BYTES < intake.held_bytes < 1.4 * MOST_CHUNKING_BYTES


def test_a_body_in_small_chunks_is_taken_while_it_is_small_and_in_larger_ones_always(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Intake(Framing.CHUNKED, 0).feed((b"3c\r\n" + b"." * 60 + b"\r\n") * 100_000)

    monkeypatch.setattr("llamaswap.http1.body.MOST_CHUNKING_BYTES", 10_000)
    Intake(Framing.CHUNKED, 0).feed((b"100\r\n" + b"." * 256 + b"\r\n") * 10_000)


def test_what_comes_behind_a_body_does_not_count() -> None:
    intake = Intake(Framing.CHUNKED, 0, 16)

    assert intake.feed(b"6\r\nhello!\r\n0\r\n\r\nGET /") == b"GET /"
    assert intake.complete


def test_the_limit_is_one_that_nobody_meets_by_chance() -> None:
    assert MOST_BODY_BYTES == 1024 * MIB


def test_bodies_share_one_room_and_leave_it_when_they_are_given_back() -> None:
    room = Room(10)
    one, other = Intake(Framing.LENGTH, 6, room=room), Intake(Framing.CHUNKED, 0, room=room)
    one.feed(b"sixsix")

    with pytest.raises(NoRoom) as caught:
        other.feed(b"1\r\n!\r\n")
    assert caught.value.status == 503
    assert (room.held, other.held_bytes, other.complete) == (6, 0, False)

    one.give_back()
    one.give_back()
    other.feed(b"1\r\n!\r\n")
    assert room.held == 6


def test_what_is_announced_takes_no_room_but_must_fit() -> None:
    room = Room(10)
    announced = Intake(Framing.LENGTH, 10, room=room)
    assert room.held == 0
    Intake(Framing.LENGTH, 10, room=room).feed(b"1")

    with pytest.raises(NoRoom):
        Intake(Framing.LENGTH, 10, room=room)
    with pytest.raises(NoRoom):
        announced.feed(bytes(10))
    assert not announced.complete


def test_a_request_without_a_body_needs_no_room() -> None:
    room = Room(10)
    Intake(Framing.LENGTH, 10, room=room).feed(bytes(10))
    room.most = 5  # a reload

    assert Intake(Framing.NONE, 0, room=room).complete
