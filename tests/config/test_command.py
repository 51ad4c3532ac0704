"""Commands to words.  The corpus has many more."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.config.command import split_command


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ()),
        (" \n# only a comment\n", ()),
        ("a  b\tc\nd", ("a", "b", "c", "d")),
        ("a\rb", ("a\rb",)),
        ("srv \\\n # note\n --a 1", ("srv", "--a", "1")),
        ('x "one \\\n two"', ("x", "one  \n two")),
        ('x --j \'{"k": "v w"}\'', ("x", "--j", '{"k": "v w"}')),
        ("a\"b c\"'d'", ("ab cd",)),
        ("x '' \"\"", ("x", "", "")),
        ('x "a', ("x", "a")),
        ("x 'a", ("x", "a")),
        (r'x "\$ \n \\ \""', ("x", r"$ \n \ " + '"')),
        (r"x a\ b \'", ("x", "a b", "'")),
        ("x $VAR ~ | && ; # y", ("x", "$VAR", "~", "|", "&&", ";", "#", "y")),
    ],
)
def test_a_command_splits_into_words_without_a_shell(text: str, words: tuple[str, ...]) -> None:
    assert split_command(text) == words


@given(st.lists(st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"])), min_size=1))
def test_words_that_are_quoted_come_back_as_they_were(words: list[str]) -> None:
    assert split_command("x " + shlex.join(words)) == ("x", *words)


@given(st.text("a '\"\\\n#$"))
def test_every_text_splits(text: str) -> None:
    assert all(isinstance(word, str) for word in split_command(text))
