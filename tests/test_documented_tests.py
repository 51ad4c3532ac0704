"""The tests that the documents name are there, and each case from the field has its row."""

from __future__ import annotations

from fnmatch import filter as matching

import pytest

from support.documents import DOCUMENTS, ROOT, functions_of, named_tests, read, section, tables
from support.field_report import cases_in


@pytest.mark.parametrize("document", DOCUMENTS)
def test_each_test_that_is_named_exists(document: str) -> None:
    missing = [
        f"{place}::{name}"
        for place, name in named_tests(read(document))
        if not any(not name or matching(functions_of(path), name) for path in ROOT.glob(place))
    ]

    assert missing == []


def test_each_case_has_a_row_that_names_a_test_and_each_row_is_a_case() -> None:
    rows = {
        int(row["case"]): named_tests(row["tests"])
        for table in tables(section("docs/reliability.md", "The cases"))
        for row in table
    }
    played = {
        int(number)
        for path in ROOT.glob("tests/**/test_*.py")
        for name in functions_of(path)
        for number in cases_in(name)
    }

    assert set(rows) == played
    assert all(rows.values())
