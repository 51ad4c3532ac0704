"""Line breaks that move when a text of several lines is written out and read again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.config.block_scalars import written_back, written_out
from support.config_checks import loaded
from support.config_nodes import bare, mapping

LITERAL = [
    ("a\nb\n", "a\nb\n"),
    ("\na\n", "a\n"),
    ("\n\n\na", "\n\na"),
    ("\n", ""),
    ("  a\n b\n", "  a\n b\n"),
    ("a\n\n\n", "a\n\n\n"),
    ("\na \nb", "\na \nb"),  # a blank before a break: written in quotes
    ("\na ", "\na "),
    ("\n\U0001f600", "\n\U0001f600"),  # not printable to that library: in quotes, too
    ("\n\ta", "\ta"),
]

FOLDED = [
    ("a b\nc\n", "a b\nc\n"),
    ("a\n  b\nc\n", "a\n\n  b\nc\n"),
    ("a\n\n  b\n", "a\n\n\n  b\n"),
    ("a\n\tb\nc", "a\n\n\tb\nc"),
    ("  a\nb\nc\n", "  a\nb c\n"),
    ("  a\nb\n\nc\n", "  a\nb\nc\n"),
    ("\na\nb", "a\nb"),
    ("a\n\n", "a\n\n\n"),
    ("  a\n\n", "  a\n\n"),
    ("a \n  b", "a \n  b"),
]


@pytest.mark.parametrize(("text", "read"), LITERAL)
def test_a_literal_block_loses_the_break_that_it_begins_with(text: str, read: str) -> None:
    assert written_back(text, folded=False) == read


@pytest.mark.parametrize(("text", "read"), FOLDED)
def test_a_folded_block_gains_a_break_before_indented_lines_or_loses_some(text: str, read: str) -> None:
    assert written_back(text, folded=True) == read


@given(st.text(alphabet="ab \t\n", max_size=30), st.booleans())
def test_nothing_but_line_breaks_changes(text: str, folded: bool) -> None:
    assert written_back(text, folded=folded).split() == text.split()


@given(st.lists(st.text(alphabet="ab", min_size=1), min_size=1))
def test_lines_without_indentation_stay_as_they_are(lines: list[str]) -> None:
    text = "\n".join(lines)

    assert written_back(text, folded=True) == text
    assert written_back(text, folded=False) == text


def test_every_text_of_a_tree_is_written_out_and_keys_are_not() -> None:
    before = mapping('{a: ["\\nx", 1, {"\\nk": "\\n\\ny"}], b: "x\\ny"}')

    assert bare(written_out(before)) == {"a": ["x", 1, {"\nk": "\ny"}], "b": "x\ny"}


def test_a_block_is_written_back_before_macros_and_once_more_after_them() -> None:
    config = loaded("""
        macros: {gap: "\\n\\n"}
        models:
          m:
            cmd: s
            proxy: http://h:1
            name: "\\nquoted"
            description: |


              two breaks are gone
            metadata:
              quoted: "\\n\\none break is gone"
              macro: "${gap}from a macro"
        """)

    model = config.models["m"]
    assert (model.name, model.description) == ("quoted", "two breaks are gone\n")
    assert model.metadata == {"quoted": "\none break is gone", "macro": "\nfrom a macro"}
