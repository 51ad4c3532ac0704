from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.metering.events import EventSplitter
from support.activity_answers import cut

LINES = st.sampled_from(
    [
        b'data: {"usage":1}',
        b'data:{"timings":2}',
        b'data: {"metrics":3}',
        b'data: {"content":"usage"}',
        b'event: "usage"',
        b': "usage"',
        b"data: [DONE]",
        b'data: {"usage":"' + b"x" * 60 + b'"}',
        b"",
    ]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\n\n", b"\r\n\r\n"])


def payloads(*pieces: bytes, longest: int = 1000) -> list[bytes]:
    found: list[bytes] = []
    splitter = EventSplitter(found.append, longest)
    for piece in pieces:
        splitter.feed(piece)
    splitter.finish()
    return found


def test_only_payloads_that_name_a_report_are_handed_on() -> None:
    told = b'data: {"usage":1}\n\ndata: {"timings":1}\n\ndata: {"metrics":1}\n\n'
    assert payloads(b'data: {"a":1}\n\n' + told + b"data: [DONE]\n\n") == [
        b'{"usage":1}',
        b'{"timings":1}',
        b'{"metrics":1}',
    ]


def test_a_space_after_data_and_a_carriage_return_are_not_part_of_the_payload() -> None:
    assert payloads(b'data:{"usage":1}\r\n\r\ndata: {"usage":2}\r\n\r\n') == [b'{"usage":1}', b'{"usage":2}']


def test_other_fields_and_comments_are_not_payloads() -> None:
    assert payloads(b'event: "usage"\nid: "usage"\n: "usage"\nxdata: "usage"\n') == []


def test_a_name_cut_in_two_is_found() -> None:
    assert payloads(b'data: {"usa', b'ge":1}\n\n') == [b'{"usage":1}']


def test_a_stream_may_end_without_a_line_end() -> None:
    assert payloads(b"data: {}\n\n", b'data: {"usage":1}') == [b'{"usage":1}']


def test_a_line_above_the_limit_is_skipped_and_the_next_one_read() -> None:
    long = b'data: {"usage":"' + b"x" * 100 + b'"}'
    after = b'\ndata: {"usage":2}\n'
    assert payloads(long + after, longest=50) == [b'{"usage":2}']
    assert payloads(long[:60], long[60:] + after, longest=50) == [b'{"usage":2}']


def test_no_more_than_one_line_is_held() -> None:
    splitter = EventSplitter(lambda _payload: None, longest=1000)
    for _ in range(100):
        splitter.feed(b"data: " + b"x" * 100)
        assert splitter._held_bytes <= 1000
        assert sum(map(len, splitter._pieces)) == splitter._held_bytes


@settings(deadline=None)
@given(st.lists(st.tuples(LINES, ENDS)), st.booleans(), st.lists(st.integers(0, 700)), st.integers(5, 90))
def test_any_cut_of_a_stream_gives_the_same_payloads(
    lines: list[tuple[bytes, bytes]], ended: bool, cuts: list[int], longest: int
) -> None:
    stream = b"".join(line + end for line, end in lines)
    stream = stream if ended else stream.rstrip(b"\r\n")
    assert payloads(*cut(stream, cuts), longest=longest) == payloads(stream, longest=longest)
    assert payloads(*(bytes([byte]) for byte in stream), longest=longest) == payloads(stream, longest=longest)
