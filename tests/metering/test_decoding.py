from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.metering.decoding import BadEncoding, Decoder, TooMuch, decoder_for
from support.activity_answers import cut


def deflated(data: bytes, wbits: int) -> bytes:
    compressor = zlib.compressobj(wbits=wbits)
    return compressor.compress(data) + compressor.flush()


def decoder(encoding: str) -> Decoder:
    found = decoder_for(encoding)
    assert found is not None
    return found


def decoded(subject: Decoder, *pieces: bytes) -> bytes:
    out = b"".join(piece for data in pieces for piece in subject.decode(data))
    subject.finish()
    return out


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:]),
    "deflate": lambda data: deflated(data, 15),
    " Deflate ": lambda data: deflated(data, -15),
}


@pytest.mark.parametrize("encoding", ["", "identity", "br", "zstd", "gzip, gzip"])
def test_other_encodings_have_no_decoder(encoding: str) -> None:
    assert decoder_for(encoding) is None


@settings(deadline=None)
@given(st.sampled_from(list(ENCODERS)), st.binary(max_size=200), st.lists(st.integers(0, 300)))
def test_any_cut_of_an_encoded_body_decodes_to_the_body(encoding: str, data: bytes, cuts: list[int]) -> None:
    assert decoded(decoder(encoding), *cut(ENCODERS[encoding](data), cuts)) == data


@pytest.mark.parametrize("encoding", ENCODERS)
@pytest.mark.parametrize("size", [256 * 1024, 256 * 1024 + 1, 3_000_001])
def test_output_of_many_slices_is_complete(encoding: str, size: int) -> None:
    data = b"a" * size
    assert decoded(decoder(encoding), ENCODERS[encoding](data)) == data


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_what_is_not_encoded_is_refused(encoding: str) -> None:
    with pytest.raises(BadEncoding, match=r"."):
        decoded(decoder(encoding), b'{"usage":{"prompt_tokens":12}}')


@pytest.mark.parametrize("encoding", ENCODERS)
@pytest.mark.parametrize("left", [1, 5, -1])
def test_a_body_that_ends_early_is_refused(encoding: str, left: int) -> None:
    with pytest.raises(BadEncoding, match="unexpected end"):
        decoded(decoder(encoding), ENCODERS[encoding](b"some words of a body")[:left])


def test_an_empty_body_is_whole() -> None:
    assert decoded(decoder("gzip")) == b""


def test_bytes_after_a_deflated_body_are_ignored() -> None:
    assert decoded(decoder("deflate"), deflated(b"words", 15) + b"rubbish", b"more") == b"words"


def test_rubbish_after_a_gzip_member_is_refused() -> None:
    with pytest.raises(BadEncoding):
        decoded(decoder("gzip"), gzip.compress(b"words") + b"rubbish")


def test_a_bomb_is_given_up_at_the_bound() -> None:
    bomb = gzip.compress(b"\0" * 20_000_000)
    subject = Decoder(lambda _head: 31, most=1_000_000)
    held: list[int] = []
    with pytest.raises(TooMuch):
        held.extend(map(len, subject.decode(bomb)))
    assert 0 < sum(held) <= 1_000_000
