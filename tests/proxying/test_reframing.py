"""Changed bodies, framed as the ones before."""

from __future__ import annotations

import pytest

from llamaswap.http1.body import Body, Intake
from llamaswap.http1.framing import Framing
from llamaswap.proxying.reframing import reframed

CHUNKS = b"3;x=1\r\nabc\r\n0\r\nT: 1\r\n\r\n"


def body(framing: Framing, wire: bytes, length: int = 0) -> Body:
    intake = Intake(framing, length)
    assert intake.feed(wire) == b""
    return intake.body()


@pytest.mark.parametrize("came", [body(Framing.LENGTH, b"abc", 3), body(Framing.CHUNKED, CHUNKS)])
def test_no_change_is_the_very_same_body(came: Body) -> None:
    assert reframed(came, None) is came


@pytest.mark.parametrize("content", [b"", b"hello", b"x" * 70_000])
def test_a_length_stays_a_length(content: bytes) -> None:
    after = reframed(body(Framing.LENGTH, b"abc", 3), content)
    assert (after.framing, after.size, after.decoded) == (Framing.LENGTH, len(content), content)
    assert b"".join(after.wire) == content


@pytest.mark.parametrize("content", [b"", b"hello", b"x" * 70_000])
def test_chunks_stay_chunks(content: bytes) -> None:
    after = reframed(body(Framing.CHUNKED, CHUNKS), content)
    assert (after.framing, after.size, after.decoded) == (Framing.CHUNKED, len(content), content)
    again = body(Framing.CHUNKED, b"".join(after.wire))
    assert again.decoded == content
