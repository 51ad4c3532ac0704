"""Rows of our own traces."""

from __future__ import annotations

import pytest

from llamaswap.simulation.arrivals_csv import TITLES, priority_of, reader
from llamaswap.simulation.records import BadLine


def test_a_row_needs_four_columns_in_any_order() -> None:
    read = reader(("run_s", "priority", "model", "arrival_s"))
    assert read is not None

    record = read(["4.2", "interactive", "chat", "0.5"])

    assert (record.at, record.model, record.priority, record.run) == (0.5, "chat", 100, 4.2)
    assert (record.user, record.cancel_after) == ("", None)


def test_a_row_may_say_who_asks_and_how_long_they_wait() -> None:
    read = reader((*TITLES, "user", "cancel_after_s", "office"))
    assert read is not None

    record = read(["0", "chat", "-99", "1", "ada", "30", "north"])

    assert (record.user, record.cancel_after, record.fields["office"]) == ("ada", 30.0, "north")
    assert read(["0", "chat", "-99", "1", "", "", ""]).cancel_after is None


@pytest.mark.parametrize(("text", "number"), [("batch", -100), ("Normal", 0), ("+7", 7), ("-98", -98)])
def test_a_priority_is_what_the_header_would_be(text: str, number: int) -> None:
    assert priority_of(text) == number


@pytest.mark.parametrize("text", ["", "high", "1.5", "\ud800"])
def test_a_priority_that_the_header_could_not_be_is_refused(text: str) -> None:
    with pytest.raises(BadLine, match="priority: expected a whole number"):
        priority_of(text)


def test_a_row_without_a_model_is_refused() -> None:
    read = reader(TITLES)
    assert read is not None
    with pytest.raises(BadLine, match="model: expected a name"):
        read(["0", "", "0", "1"])


def test_other_tables_are_not_its() -> None:
    assert reader(("arrival_s", "model")) is None
