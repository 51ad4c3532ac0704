"""Frames and their masks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llamaswap.stub.websocket import acceptance, frame, is_wanted, unmasked
from llamaswap.stub.wire import Request


def asking(*more: tuple[str, str]) -> Request:
    headers = (("Upgrade", "WebSocket"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="), *more)
    return Request(method="GET", target="/ws", protocol="HTTP/1.1", headers=headers, body=b"")


def test_it_is_granted_with_the_answer_of_rfc_6455_and_the_first_protocol() -> None:
    head = acceptance(asking(("Sec-WebSocket-Protocol", "one, two")))

    assert is_wanted(asking())
    assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in head
    assert b"Sec-WebSocket-Protocol: one\r\n" in head


def test_a_frame_tells_its_size_in_the_shortest_way() -> None:
    assert frame(0x81, b"x" * 125)[:2] == b"\x81\x7d"
    assert frame(0x81, b"x" * 126)[:4] == b"\x81\x7e\x00\x7e"
    assert frame(0x82, b"x" * 65536)[:10] == b"\x82\x7f" + (65536).to_bytes(8)


@given(mask=st.binary(min_size=4, max_size=4), payload=st.binary(max_size=40))
def test_a_mask_twice_is_no_mask(mask: bytes, payload: bytes) -> None:
    assert unmasked(mask, unmasked(mask, payload)) == payload
