from __future__ import annotations

import math
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.activity.record import Activity
from llamaswap.activity.rows import FIELDS, activity_of, values_of
from llamaswap.metering.usage import Usage
from support.activity_rows import visit

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))
ANY_NUMBER = st.one_of(st.integers(), st.floats())


def test_a_row_comes_back_as_it_went() -> None:
    usage = Usage(
        cache_tokens=1,
        draft_tokens=2,
        draft_acc_tokens=3,
        input_tokens=4,
        output_tokens=5,
        prompt_per_second=6.5,
        tokens_per_second=-1.0,
    )
    row = visit("modèle", usage=usage, status=499, error_msg="left", metadata={"selector": "fast", "ü": "ö"})
    assert activity_of(values_of(row)) == row


def test_there_is_one_value_for_each_column() -> None:
    assert len(values_of(visit())) == len(FIELDS.split(","))


@pytest.mark.parametrize("metadata", ["", "null", "[1]", "{broken", "3"])
def test_metadata_that_is_no_object_reads_as_none(metadata: str) -> None:
    assert activity_of((*values_of(visit())[:-1], metadata)).metadata == {}


def test_metadata_of_other_types_reads_as_text() -> None:
    assert activity_of((*values_of(visit())[:-1], '{"n":1}')).metadata == {"n": "1"}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_stored_as_zero(number: float) -> None:
    stored = activity_of(values_of(visit(ended=number, usage=Usage(tokens_per_second=number))))
    assert (stored.ended, stored.usage.tokens_per_second) == (0, 0.0)


@given(ANY_TEXT, ANY_NUMBER, st.integers(), st.floats())
def test_sqlite_takes_whatever_a_row_may_hold(text: str, ended: float, tokens: int, speed: float) -> None:
    row = Activity(
        ended=ended,
        model=text,
        req_path=text,
        resp_content_type=text,
        resp_status_code=tokens,
        usage=Usage(input_tokens=tokens, cache_tokens=-tokens, prompt_per_second=speed),
        duration_ms=tokens,
        error_msg=text,
        metadata={text: text},
    )
    connection = sqlite3.connect(":memory:")
    try:
        values = values_of(row)
        (taken,) = connection.execute(f"SELECT {', '.join('?' * len(values))}", values).fetchall()
        assert None not in taken
    finally:
        connection.close()
