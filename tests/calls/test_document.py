"""JSON documents, opened where somebody looks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.calls.document import MOST_MEMBERS, Container, Unreadable, open_value, text_of
from support.calls_json import ARRAYS, OBJECTS


def opened(text: bytes) -> Container:
    container = open_value(text)
    assert container is not None
    return container


def open_all(container: Container) -> None:
    for item in container.items:
        inner = open_value(item.value)
        if inner is not None:
            item.value = inner
            open_all(inner)


@given(OBJECTS | ARRAYS)
def test_opening_loses_no_byte(text: str) -> None:
    assert text_of(opened(text.encode())) == text.encode()


@given(OBJECTS | ARRAYS)
def test_opening_everything_loses_no_byte_either(text: str) -> None:
    container = opened(text.encode())
    open_all(container)
    assert text_of(container) == text.encode()


@given(OBJECTS)
def test_members_are_those_that_a_json_reader_finds_repeated_keys_included(text: str) -> None:
    pairs = json.loads(text, object_pairs_hook=list)
    container = opened(text.encode())

    found = [
        (item.name, json.loads(bytes(memoryview(item.value)), object_pairs_hook=list))  # type: ignore[arg-type]  # nothing is opened
        for item in container.items
    ]
    assert found == pairs


def test_a_value_that_begins_like_the_last_one_of_its_key_is_measured_by_itself() -> None:
    container = opened(b'{"a":22,"a":[1,"}"],"a":2}')
    assert [bytes(memoryview(item.value)) for item in container.items] == [b"22", b'[1,"}"]', b"2"]  # type: ignore[arg-type]  # nothing is opened


@pytest.mark.parametrize("text", [b"1", b'"{"', b"null", b" true ", b""])
def test_other_values_have_no_inside(text: bytes) -> None:
    assert open_value(text) is None


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b'{"a":1,}',
        b'{"a":1} x',
        b'{"a":NaN}',
        b'{"a" 1}',
        b'{"\xff":1}',
        b"[1,",
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":' + b"[" * 3000 + b"]" * 3000 + b',"a":1}',
    ],
)
def test_what_is_broken_or_bottomless_is_unreadable(text: bytes) -> None:
    with pytest.raises(Unreadable):
        open_value(text)


@pytest.mark.parametrize(
    "text",
    [
        rb'{"a":"\ud83d","b":1}',
        rb'{"b":1,"a":["x\uDE00 \ud83d\ude00",{"c":"\ud83d\ud83d\ude00"}]}',
        rb'{"\udfff":1,"a":"\\ud83d \\\ud83d"}',
        rb'{"a":"\ud83d","a":"\ud800x"}',
        rb'["\udbff","\u00e4", "b"]',
    ],
)
def test_half_a_character_that_is_written_out_is_opened_around_and_stays(text: bytes) -> None:
    """As clients write it that cut a text in the middle of an emoji."""
    container = opened(text)

    keys = [key for key, _ in json.loads(text, object_pairs_hook=list)] if text[:1] == b"{" else []
    assert [item.name.replace("\ufffd", "\udfff") for item in container.items if item.name] == keys
    assert text_of(container) == text
    open_all(container)
    assert text_of(container) == text


def test_too_many_of_them_are_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llamaswap.calls.document.MOST_SURROGATES", 2)

    opened(rb'["\ud800\ud800"]')
    with pytest.raises(Unreadable):
        open_value(rb'["\ud800\ud800\ud800"]')


@pytest.mark.parametrize("member", [b'"a%d":1', b'"a":%d', b"%d"])
def test_a_container_of_too_many_members_is_unreadable(member: bytes) -> None:
    brackets = b"{%b}" if b":" in member else b"[%b]"

    def text(members: int) -> bytes:
        return brackets % b",".join(member % n for n in range(members))

    assert len(opened(text(MOST_MEMBERS)).items) == MOST_MEMBERS
    with pytest.raises(Unreadable):
        open_value(text(MOST_MEMBERS + 1))


def test_a_text_of_too_many_keys_is_unreadable_before_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llamaswap.calls.document.MOST_KEYS", 3)

    assert len(opened(b'{"a":{"b":1},"c":1}').items) == 2
    with pytest.raises(Unreadable):
        open_value(b'{"a":{"b":1},"c":1,"d":1}')


@given(st.binary(max_size=60) | st.text(alphabet='{}[]":,1a\\ ', max_size=40).map(str.encode))
def test_any_bytes_are_opened_exactly_or_refused(text: bytes) -> None:
    try:
        container = open_value(text)
    except Unreadable:
        return
    assert container is None or text_of(container) == text
