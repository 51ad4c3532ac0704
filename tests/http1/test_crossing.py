"""How a response changes between two hops."""

from __future__ import annotations

import pytest

from llamaswap.http1.crossing import Crossing, coding_to_undo, cross, replaced
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


PACKED = ((b"A", b"1"), (b"content-Encoding", b"gzip"), (b"Content-length", b"9"))


@pytest.mark.parametrize("framing", [Framing.LENGTH, Framing.CHUNKED, Framing.UNTIL_CLOSE])
@pytest.mark.parametrize("modern", [True, False])
def test_a_body_that_is_unpacked_says_nothing_of_its_coding_or_length(
    framing: Framing, *, modern: bool
) -> None:
    fields, crossing = cross(head(200, *PACKED), framing, modern=modern, unpacked=True)

    assert fields == [(b"A", b"1"), *([(b"Transfer-Encoding", b"chunked")] if modern else [])]
    assert crossing is (Crossing.RECHUNKED if modern else Crossing.DECHUNKED)
    assert crossing.bare
    assert crossing.closes is not modern


@pytest.mark.parametrize(
    ("accepted", "undone"),
    [
        (None, True),
        (b"", True),
        (b"br", True),
        (b"identity", True),
        (b"br, zstd;q=1", True),
        (b"gzip;q=0", True),
        (b"gzip; q=0.000", True),
        (b"*;q=0", True),
        (b"*, gzip;q=0", True),
        (b"deflate", True),
        (b"gzip", False),
        (b"GZip", False),
        (b"x-gzip", False),
        (b"br, gzip;q=0.1", False),
        (b"br,gzip ; q=0.001", False),
        (b"*", False),
        (b"*;q=0, gzip", False),
    ],
)
def test_a_coding_is_undone_for_who_did_not_say_that_he_takes_it(
    accepted: bytes | None, *, undone: bool
) -> None:
    asked: Headers = () if accepted is None else ((b"accept-Encoding", accepted),)

    coding = coding_to_undo(asked, head(200, *PACKED), Framing.LENGTH)

    assert coding == (b"gzip" if undone else None)


def test_several_fields_name_what_a_client_takes() -> None:
    asked = ((b"Accept-Encoding", b"br"), (b"Accept-Encoding", b"gzip"))

    assert coding_to_undo(asked, head(200, *PACKED), Framing.LENGTH) is None


@pytest.mark.parametrize(
    ("said", "coding"),
    [
        (b"gzip", b"gzip"),
        (b"X-GZip", b"gzip"),
        (b"Deflate", b"deflate"),
        (b"br", None),
        (b"zstd", None),
        (b"identity", None),
        (b"gzip, br", None),
        (b"", None),
    ],
)
def test_only_what_can_be_undone_is(said: bytes, coding: bytes | None) -> None:
    assert coding_to_undo((), head(200, (b"Content-Encoding", said)), Framing.CHUNKED) == coding


@pytest.mark.parametrize(
    ("answer", "framing"),
    [
        (head(200), Framing.CHUNKED),
        (head(200, *PACKED, (b"Content-Encoding", b"br")), Framing.LENGTH),
        (head(200, *PACKED), Framing.NONE),  # the answer to a HEAD
        (head(304, *PACKED), Framing.NONE),
        (head(206, *PACKED), Framing.LENGTH),
        (head(101, *PACKED), Framing.UNTIL_CLOSE),
        (head(200, (b"Content-Encoding", b"gzip"), (b"Content-Length", b"00")), Framing.LENGTH),
    ],
)
def test_a_body_that_is_none_or_not_all_is_left_as_it_is(answer: ResponseHead, framing: Framing) -> None:
    assert coding_to_undo((), answer, framing) is None
