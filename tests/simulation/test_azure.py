"""Rows of Azure's traces."""

from __future__ import annotations

import pytest

from llamaswap.simulation.azure import TITLES, moment, reader
from llamaswap.simulation.records import BadLine


def test_a_row_becomes_a_moment_and_two_counts() -> None:
    read = reader(TITLES)
    assert read is not None

    record = read(["2023-11-16 18:17:03.9799600", "4808", "10"])

    assert (record.prompt, record.generated, record.model, record.run) == (4808, 10, "", None)
    assert record.at == pytest.approx(1700158623.97996)


def test_moments_with_and_without_a_zone_are_of_one_clock() -> None:
    assert moment("2024-05-10 00:00:00.5") == moment("2024-05-10 00:00:00.5+00:00")
    assert moment("2024-05-10 01:00:00+01:00") == moment("2024-05-10 00:00:00")


def test_further_columns_are_left_alone_and_other_tables_are_not_its() -> None:
    read = reader(("NumImages", *TITLES))
    assert read is not None
    assert read(["3", "2024-05-10 00:00:00", "7", "8"]).prompt == 7
    assert reader(("Timestamp", "Model")) is None


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (["yesterday", "1", "1"], "TIMESTAMP: expected a date and time, got 'yesterday'"),
        (["2024-05-10 00:00:00", "many", "1"], "ContextTokens: expected a number, got 'many'"),
        (["2024-05-10 00:00:00", "1", "-1"], "GeneratedTokens: expected a number from 0, got '-1'"),
    ],
)
def test_a_row_that_makes_no_sense_says_why(row: list[str], why: str) -> None:
    read = reader(TITLES)
    assert read is not None
    with pytest.raises(BadLine) as bad:
        read(row)
    assert str(bad.value) == why
