"""Rows of BurstGPT's files, old and new."""

from __future__ import annotations

import csv
import io

import pytest

from llamaswap.simulation.burstgpt import reader
from llamaswap.simulation.records import BadLine, Record
from support.traces import BURSTGPT_1, BURSTGPT_3


def records(text: str) -> list[Record]:
    titles, *rows = csv.reader(io.StringIO(text))
    read = reader(titles)
    assert read is not None
    return [read(row) for row in rows]


def test_a_row_of_six_columns_has_no_session() -> None:
    first, second = records(BURSTGPT_1)

    assert (first.at, first.model, first.prompt, first.generated, first.user) == (5.0, "ChatGPT", 472, 18, "")
    assert second.fields["Log Type"] == "API log"


def test_a_row_of_eight_columns_has_one() -> None:
    first, second = records(BURSTGPT_3)

    assert (first.at, first.model, first.user) == (19440110.0, "GPT-4", "1722ac82")
    assert (second.user, second.fields["Elapsed time"]) == ("", "2")


def test_other_tables_are_not_its() -> None:
    assert reader(("TIMESTAMP", "ContextTokens", "GeneratedTokens")) is None


def test_a_row_that_makes_no_sense_says_why() -> None:
    with pytest.raises(BadLine, match="Timestamp: expected a number, got 'soon'"):
        records(BURSTGPT_1 + "soon,ChatGPT,1,1,2,API log\n")
