"""SECURITY.md keeps its word: every claim names tests, these exist, and only gaps are expected to fail."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from support.documents import ROOT, anchors, links, read, section, tables

DOCUMENT = "SECURITY.md"
NAMED = re.compile(r"\btests/[a-z0-9_/]+\.py::test_[A-Za-z0-9_]+")


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of one file."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def expected_to_fail(path: Path) -> set[str]:
    """The tests of one file that are marked as failing, as SECURITY.md names tests."""
    marked = {
        function.name
        for function in functions(path)
        if any("mark.xfail" in ast.unparse(decorator) for decorator in function.decorator_list)
    }
    return {f"{path.relative_to(ROOT)}::{name}" for name in marked}


def test_every_claim_and_every_limit_names_a_test() -> None:
    rows = [
        row for table in tables(section(DOCUMENT, "Claims, and the tests that hold them")) for row in table
    ]

    assert len(rows) > 30
    assert [row for row in rows if not NAMED.search(row["held by"])] == []


def test_what_is_expected_to_fail_is_a_known_gap_and_the_other_way_round() -> None:
    gaps = set(NAMED.findall(section(DOCUMENT, "Known gaps")))
    failing = {
        name for path in (ROOT / "tests/security").glob("test_*.py") for name in expected_to_fail(path)
    }
    claimed = set(NAMED.findall(section(DOCUMENT, "Claims, and the tests that hold them")))

    assert gaps == failing
    assert not claimed & gaps


def test_every_test_of_security_is_named() -> None:
    named = set(NAMED.findall(read(DOCUMENT)))
    ours = {
        f"{path.relative_to(ROOT)}::{function.name}"
        for path in (ROOT / "tests/security").glob("test_*.py")
        if path.name != Path(__file__).name
        for function in functions(path)
        if function.name.startswith("test_")
    }

    assert sorted(ours - named - NOT_NAMED) == []
    assert ours >= NOT_NAMED


NOT_NAMED = {
    "tests/security/test_children.py::test_a_model_may_still_be_given_such_a_name_on_purpose",
    "tests/security/test_exposure.py::test_every_interface_has_to_be_asked_for",
    "tests/security/test_smuggling.py::test_a_trailer_that_does_none_of_that_passes",
    "tests/security/test_upstream_base.py::test_a_way_up_is_found_however_it_is_written",
    "tests/security/test_upstream_base.py::test_dots_that_lead_nowhere_pass",
    "tests/security/test_upstream_base.py::test_the_name_of_a_model_cannot_lead_out_either",
}
"""Tests of what belongs to a claim rather than being one."""


def test_its_links_lead_somewhere() -> None:
    for link in links(DOCUMENT):
        file, _, anchor = link.partition("#")
        assert (ROOT / file).exists(), link
        assert not anchor or anchor in anchors(file), link
