"""Content codings undone, piece by piece."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.http1.unpacking import SLICE_BYTES, Damaged, Unpacker
from support.http1_wires import split

PLAIN = b"hello " * 50


def deflated(data: bytes, window: int = zlib.MAX_WBITS) -> bytes:
    packer = zlib.compressobj(wbits=window)
    return packer.compress(data) + packer.flush()


def raw(data: bytes) -> bytes:
    return deflated(data, -zlib.MAX_WBITS)


def taken(unpacker: Unpacker) -> bytes:
    pieces = []
    while piece := unpacker.take():
        assert len(piece) <= SLICE_BYTES
        pieces.append(piece)
    return b"".join(pieces)


WAYS = st.sampled_from([(b"gzip", gzip.compress), (b"deflate", deflated), (b"deflate", raw)])


@given(WAYS, st.binary(max_size=2000), st.lists(st.integers(0, 3000), max_size=8))
def test_a_body_comes_out_whatever_pieces_it_came_in(way: tuple, data: bytes, cuts: list[int]) -> None:  # type: ignore[type-arg]  # a coding and what packs in it
    coding, pack = way
    unpacker = Unpacker(coding)
    got = b""
    for piece in split(pack(data), cuts):
        unpacker.feed(piece)
        got += taken(unpacker)

    assert got == data
    assert unpacker.whole


@pytest.mark.parametrize("pack", [gzip.compress, deflated, raw])
def test_a_bomb_goes_off_in_slices(pack: object) -> None:
    assert callable(pack)
    unpacker = Unpacker(b"gzip" if pack is gzip.compress else b"deflate")
    unpacker.feed(pack(bytes(3 * SLICE_BYTES + 5)))

    assert [len(unpacker.take()) for _ in range(5)] == [SLICE_BYTES] * 3 + [5, 0]
    assert unpacker.whole


def test_one_gzip_member_may_follow_another() -> None:
    unpacker = Unpacker(b"gzip")
    unpacker.feed(gzip.compress(b"hello ") + gzip.compress(b"") + gzip.compress(b"world"))

    assert taken(unpacker) == b"hello world"
    assert unpacker.whole


def test_what_follows_a_deflated_body_counts_for_nothing() -> None:
    unpacker = Unpacker(b"deflate")
    unpacker.feed(deflated(PLAIN) + b"rubbish")
    assert taken(unpacker) == PLAIN

    unpacker.feed(b"more rubbish")

    assert taken(unpacker) == b""
    assert unpacker.whole


def test_no_body_is_whole() -> None:
    assert Unpacker(b"gzip").whole


@pytest.mark.parametrize("coding", [b"gzip", b"deflate"])
def test_a_body_that_breaks_off_is_not_whole(coding: bytes) -> None:
    packed = gzip.compress(PLAIN) if coding == b"gzip" else deflated(PLAIN)
    for end in (1, 2, len(packed) // 2, len(packed) - 1):
        unpacker = Unpacker(coding)
        unpacker.feed(packed[:end])
        assert PLAIN.startswith(taken(unpacker))
        assert not unpacker.whole


@pytest.mark.parametrize(
    ("coding", "data"),
    [
        (b"gzip", b"plain text"),
        (b"gzip", gzip.compress(PLAIN, mtime=0)[:-8] + bytes(8)),
        (b"gzip", gzip.compress(PLAIN, mtime=0) + b"rubbish"),
        (b"deflate", b"\xff\xff\xff"),
        (b"deflate", deflated(PLAIN)[:-4] + bytes(4)),
    ],
)
def test_damaged_bytes_are_told(coding: bytes, data: bytes) -> None:
    unpacker = Unpacker(coding)
    unpacker.feed(data)

    with pytest.raises(Damaged) as caught:
        taken(unpacker)

    assert caught.value.reason
