"""How a response changes between two hops."""

from __future__ import annotations

import pytest

from llamaswap.http1.crossing import Crossing, cross, replaced
from llamaswap.http1.framing import Framing
from llamaswap.http1.heads import Headers, ResponseHead

CHUNKED: Headers = (
    (b"transfer-encoding", b"Chunked"),
    (b"a", b"1"),
    (b"TRAILER", b"x"),
    (b"Connection", b"a"),
)


def head(status: int = 200, *headers: tuple[bytes, bytes]) -> ResponseHead:
    return ResponseHead(status, b"", (1, 1), headers)


def test_chunks_cross_with_the_fields_that_announce_them() -> None:
    fields, crossing = cross(head(200, *CHUNKED), Framing.CHUNKED, modern=True)

    assert fields == [(b"transfer-encoding", b"Chunked"), (b"TRAILER", b"x")]
    assert crossing is Crossing.AS_THEY_CAME


def test_a_client_that_knows_no_chunks_gets_none_announced() -> None:
    assert cross(head(200, *CHUNKED), Framing.CHUNKED, modern=False) == ([], Crossing.DECHUNKED)


@pytest.mark.parametrize(
    ("modern", "fields", "crossing"),
    [
        (True, [(b"Transfer-Encoding", b"chunked")], Crossing.ENCHUNKED),
        (False, [], Crossing.UNTIL_CLOSE),
    ],
)
def test_a_body_that_ends_by_closing_gets_chunks_where_they_are_known(
    modern: bool, fields: list[tuple[bytes, bytes]], crossing: Crossing
) -> None:
    assert cross(head(), Framing.UNTIL_CLOSE, modern=modern) == (fields, crossing)
    assert crossing.closes is not modern


@pytest.mark.parametrize(("status", "kept"), [(200, True), (304, True), (204, False), (103, False)])
def test_a_length_stays_where_it_may(status: int, kept: bool) -> None:
    fields, _ = cross(head(status, (b"content-length", b"0")), Framing.NONE, modern=True)

    assert bool(fields) is kept


def test_a_switch_keeps_what_it_switches_to() -> None:
    switch = head(101, (b"connection", b"upgrade"), (b"x", b"y"), (b"upgrade", b"websocket"))

    assert cross(switch, Framing.UNTIL_CLOSE, modern=True) == (
        [(b"x", b"y"), (b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")],
        Crossing.AS_THEY_CAME,
    )


def test_added_fields_take_the_place_of_all_of_their_name() -> None:
    fields = [(b"a", b"1"), (b"B", b"2"), (b"A", b"3")]

    assert replaced(fields, [(b"A", b"x")]) == [(b"B", b"2"), (b"A", b"x")]
    assert replaced(fields, []) == fields
