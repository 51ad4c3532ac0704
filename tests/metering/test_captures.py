from __future__ import annotations

import base64
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.metering.capture import OVERHEAD, Capture, HeadFields, fields_json
from llamaswap.metering.captures import LARGEST_RAW, MIB, SMALL, Captures, pack, plain, unpack

NOISE = random.Random(7).randbytes(300_000)


def head(*headers: tuple[bytes, bytes]) -> HeadFields:
    return HeadFields(fields_json(headers, with_length=True))


def capture(req_body: bytes = b"", resp_body: bytes = b"", path: str = "/v1/chat/completions") -> Capture:
    return Capture(
        req_path=path,
        asked=head((b"content-type", b"application/json"), (b"Cookie", b"s3cret")),
        req_body=[req_body] if req_body else (),
        answered=head((b"X-Up", b"1")),
        resp_body=[resp_body] if resp_body else (),
    )


def test_a_capture_is_shown_as_llama_swap_shows_it() -> None:
    store = Captures(MIB)
    store.keep(13, capture(b'{"model":"m1"}', b'{"ok":true}'))

    assert store.show(13) == {
        "id": 13,
        "req_path": "/v1/chat/completions",
        "req_headers": {"Content-Type": "application/json", "Cookie": "[REDACTED]"},
        "req_body": "eyJtb2RlbCI6Im0xIn0=",
        "resp_headers": {"X-Up": "1"},
        "resp_body": "eyJvayI6dHJ1ZX0=",
    }


def test_a_body_that_is_not_there_is_null() -> None:
    store = Captures(MIB)
    store.keep(1, capture())

    shown = store.show(1)
    assert shown is not None
    assert (shown["req_body"], shown["resp_body"]) == (None, None)


def test_the_oldest_capture_gives_way_when_the_compressed_bytes_outgrow_the_buffer() -> None:
    store = Captures(700_000)
    for row_id in (1, 2, 3):
        assert store.keep(row_id, capture(NOISE))

    assert [row_id for row_id in (1, 2, 3) if row_id in store] == [2, 3]
    assert store.held_bytes <= 700_000
    assert store.show(1) is None


def test_a_capture_larger_than_the_whole_buffer_is_skipped_and_evicts_nobody() -> None:
    store = Captures(200_000)
    store.keep(1, capture(b"small"))

    assert not store.keep(2, capture(NOISE))

    assert 1 in store
    assert 2 not in store


def test_it_is_the_compressed_size_that_counts() -> None:
    store = Captures(100_000)

    assert store.keep(1, capture(b"data: again and again\n\n" * 50_000))
    assert store.held_bytes < 100_000


def test_a_small_capture_counts_with_all_that_it_holds() -> None:
    store = Captures(MIB)
    small = capture(b"a" * 1000, b"b" * 500)
    store.keep(1, small)

    heads = len(small.asked.json) + len(small.answered.json)
    assert store.held_bytes == 1000 + 500 + heads + OVERHEAD


@given(st.lists(st.integers(0, 3 * SMALL), max_size=60))
def test_whatever_comes_what_is_held_stays_within_the_buffer(sizes: list[int]) -> None:
    store = Captures(60_000)
    for row_id, size in enumerate(sizes):
        store.keep(row_id, capture(NOISE[:size]))
        assert 0 <= store.held_bytes <= 60_000
        assert row_id in store
    for row_id in range(len(sizes)):
        store._forget(row_id)
    assert store.held_bytes == 0


def test_what_is_small_and_what_is_not_are_shown_alike() -> None:
    store = Captures(MIB)
    small, large = capture(b"x", b"y" * 100), capture(b"x", b"y" * 2 * SMALL)
    store.keep(1, small)
    store.keep(2, large)

    assert store.show(1) == {"id": 1, **plain(small)}
    assert store.show(2) == {"id": 2, **plain(large)}


def test_a_buffer_of_zero_keeps_nothing() -> None:
    store = Captures(0)

    assert not store.keep(1, capture(b"x"))
    assert store.show(1) is None


def test_a_row_captured_twice_counts_once() -> None:
    store = Captures(MIB)
    store.keep(1, capture(NOISE))
    once = store.held_bytes
    store.keep(1, capture(NOISE))

    assert store.held_bytes == once


def test_giving_up_on_what_does_not_shrink_happens_before_all_of_it_was_compressed() -> None:
    assert pack(capture(NOISE * 10), 100_000) is None


def test_recording_is_bounded_for_every_buffer() -> None:
    assert Captures(5 * MIB).largest_raw == 20 * MIB
    assert Captures(1000 * MIB).largest_raw == 32 * MIB
    assert Captures(0).largest_raw == 0


@given(st.binary(max_size=200), st.binary(max_size=200), st.text(max_size=20))
def test_what_comes_out_is_what_went_in(req_body: bytes, resp_body: bytes, path: str) -> None:
    packed = pack(capture(req_body, resp_body, path), MIB)

    assert packed is not None
    shown = unpack(packed)
    assert shown == plain(capture(req_body, resp_body, path))
    assert shown["req_path"] == path
    assert base64.b64decode(shown["req_body"] or "") == req_body
    assert base64.b64decode(shown["resp_body"] or "") == resp_body


def test_a_smaller_buffer_keeps_the_newest_and_a_larger_one_all() -> None:
    store = Captures(MIB)
    for row_id in (1, 2, 3):
        store.keep(row_id, capture(NOISE))

    store.resize(700_000)
    assert [row_id for row_id in (1, 2, 3) if row_id in store] == [2, 3]
    store.resize(2 * MIB)
    store.keep(4, capture(NOISE))
    assert [row_id for row_id in (2, 3, 4) if row_id in store] == [2, 3, 4]

    store.resize(0)
    assert (store.largest_raw, store.held_bytes, 4 in store) == (0, 0, False)


def test_a_cleared_store_has_room_again() -> None:
    store = Captures(700_000)
    for row_id in (1, 2):
        store.keep(row_id, capture(NOISE))

    store.clear()

    assert (store.held_bytes, store.show(1)) == (0, None)
    assert store.keep(1, capture(NOISE))
    assert store.keep(2, capture(NOISE))


def a_large_one() -> Capture:
    return capture(b"x" * (SMALL + 1), b"y" * SMALL)


def test_a_large_capture_is_shown_while_it_is_being_packed_and_after_that() -> None:
    store = Captures(MIB)

    packing = store.lay_by(7, a_large_one())

    assert packing is not None
    before = store.show(7)
    assert 7 in store and store.held_bytes == 0
    assert store.packed(7, packing())
    assert store.show(7) == before
    assert 0 < store.held_bytes < SMALL


def test_a_small_capture_need_not_be_packed() -> None:
    store = Captures(MIB)

    assert store.lay_by(7, capture(b"x", b"y")) is None
    assert 7 not in store


def test_what_waits_to_be_packed_is_bounded() -> None:
    store = Captures(MIB)
    huge = capture(bytes(LARGEST_RAW), b"")

    taken = [store.lay_by(row_id, huge) is not None for row_id in range(4)]

    assert taken == [True, False, False, False]


@pytest.mark.parametrize("forgotten", [True, False])
def test_a_capture_that_does_not_shrink_enough_or_is_not_wanted_any_more_is_gone(*, forgotten: bool) -> None:
    store = Captures(MIB)
    packing = store.lay_by(7, a_large_one())
    assert packing is not None
    if forgotten:
        store.clear()

    assert not store.packed(7, packing() if forgotten else None)

    assert 7 not in store
    assert store.lay_by(8, capture(bytes(LARGEST_RAW), b"")) is not None
