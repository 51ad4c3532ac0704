"""What a waiting client is told."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.errors import LoadRefused
from llamaswap.web.chatter import (
    REMARKS,
    RULE,
    Remarks,
    closing,
    error_event,
    event,
    opening,
    pieces,
    queue_notice,
    remark_line,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def test_the_first_event_is_the_rule_that_clients_look_for() -> None:
    assert event(pieces(opening("m1"))[0]) == (
        'data: {"choices":[{"delta":{"reasoning_content":"━━━━━"}}]}\n\n'.encode()
    )


def test_the_words_stand_between_two_rules() -> None:
    assert opening("org/m") == "━━━━━\nllama-swap loading model: org/m\n"
    assert closing(1.234) == "\nDone! (1.23s)\n━━━━━\n \n"
    assert queue_notice(3) == "\nQueue position: #3 "
    assert remark_line("Hm.") == "\nHm. "


@given(TEXT)
def test_pieces_make_the_text_again_and_breaks_stand_alone(text: str) -> None:
    cut = pieces(text)

    assert "".join(cut) == text
    assert all(piece == "\n" or (0 < len(piece) <= 5 and "\n" not in piece) for piece in cut)


@given(TEXT)
def test_an_event_is_one_line_of_json_whatever_it_says(piece: str) -> None:
    raw = event(piece)

    assert raw.endswith(b"\n\n")
    assert len(raw.decode().splitlines()) == 2
    data = json.loads(raw.removeprefix(b"data: "))
    assert data == {"choices": [{"delta": {"reasoning_content": piece}}]}


def test_markup_is_escaped_and_other_letters_are_not() -> None:
    assert b'"\\u003cb\\u003e\\u0026 \xc3\xa9"' in event("<b>& é")


def test_an_id_that_is_no_text_does_no_harm() -> None:
    assert b"reasoning_content" in event("\udc80")


def test_an_error_is_an_event_that_clients_can_parse() -> None:
    raw = error_event(LoadRefused("upstream command exited prematurely", ["bad\nline"]))

    assert raw.startswith(b"data: {") and raw.endswith(b"}\n\n") and raw.count(b"\n") == 2
    error = json.loads(raw.removeprefix(b"data: "))["error"]
    assert error["message"].startswith("unspecific error: upstream command exited prematurely")
    assert (error["type"], error["code"]) == ("server_error", "internal_error")


def test_every_remark_comes_once_before_one_comes_again() -> None:
    remarks = Remarks(Random(1))

    first, second = ([remarks.next() for _ in REMARKS] for _ in range(2))

    assert sorted(first) == sorted(second) == sorted(REMARKS)
    assert first != list(REMARKS)


@pytest.mark.parametrize("remark", REMARKS)
def test_a_remark_is_a_short_line_that_is_no_rule(remark: str) -> None:
    assert 0 < len(remark) <= 60
    assert remark.isascii() and "\n" not in remark and RULE not in remark


def test_there_are_enough_remarks_for_a_long_load() -> None:
    assert len(set(REMARKS)) >= 12
