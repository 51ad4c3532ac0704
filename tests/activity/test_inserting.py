from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.activity.inserting import SIZES, Insertion

INSERTION = Insertion("words", "word, length")


@pytest.fixture
def table() -> Iterator[sqlite3.Connection]:
    connection = _table()
    yield connection
    connection.close()


def _table() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(
        "CREATE TABLE words (id INTEGER PRIMARY KEY AUTOINCREMENT, word TEXT, length INTEGER NOT NULL)"
    )
    return connection


def test_no_rows_are_no_statement(table: sqlite3.Connection) -> None:
    assert INSERTION.add(table, []) == 0


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2 * SIZES[0] + 3))
def test_rows_of_any_number_go_in_once_and_in_order(count: int) -> None:
    table = _table()
    try:
        rows = [(str(number), number) for number in range(count)]
        assert INSERTION.add(table, rows) == count
        assert table.execute("SELECT word, length FROM words ORDER BY id").fetchall() == rows
        assert table.execute("SELECT id FROM words ORDER BY id").fetchall() == [
            (number + 1,) for number in range(count)
        ]
    finally:
        table.close()


def test_a_thousand_rows_take_few_statements(table: sqlite3.Connection) -> None:
    statements: list[str] = []
    table.set_trace_callback(statements.append)

    INSERTION.add(table, [("x", 1)] * 1000)

    assert len(statements) <= 16


def test_the_last_id_goes_on_from_what_is_there(table: sqlite3.Connection) -> None:
    INSERTION.add(table, [("a", 1)] * 5)
    table.execute("DELETE FROM words")

    assert INSERTION.add(table, [("b", 1)] * 3) == 8


def test_a_row_that_the_table_refuses_is_an_error(table: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        INSERTION.add(table, [("a", 1), ("b", None)])
