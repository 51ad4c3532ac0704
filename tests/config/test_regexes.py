"""What llama-swap takes for an expression, and what it does not."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.config.regexes import LONGEST, WrongRegex, compile_re2


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r".*\.(js|css)$", "/a/b.js", True),
        (r".*\.(js|css)$", "/a/b.js\n", False),
        (r"^b", "a\nb", False),
        (r"(?m)^b$", "a\nb\n", True),
        (r"a.b", "a\nb", False),
        (r"(?s)a.b", "a\nb", True),
        (r"(?i)aB", "Ab", True),
        (r"a(?i)b|c", "C", True),
        (r"(?:a(?i)b)c", "aBC", False),
        (r"(?i:a)b", "AB", False),
        (r"\Qa.b\E.", "a.bc", True),
        (r"\Qa.b\E", "axb", False),
        (r"\.js\z", "x.js", True),
        (r"\x41\x{1F600}\101", "A😀A", True),
        (r"\d", "٣", False),
        (r"\w+\s\W", "ä a -", True),
        (r"\bä", "aä", True),
        (r"[[:alpha:]_\d-]{3}", "a_-", True),
        (r"[^[:^digit:]]", "7", True),
        (r"[\D]", "7", False),
        (r"[]a]", "]", True),
        (r"a{,3}x{", "a{,3}x{", True),
        (r"(?P<n>a)(?P<n>b)(?<m>c)", "abc", True),
        (r"^*a", "a", True),
        (r"^\pL$", "é", True),
        (r"\p{Greek}", "a", False),
        (r"", "anything", True),
    ],
)
def test_an_expression_finds_what_re2_finds(pattern: str, text: str, found: bool) -> None:
    assert bool(compile_re2(pattern).search(text)) is found


def test_ungreedy_turns_repetitions_around() -> None:
    match: Any = compile_re2("(?U)a+").search("aaa")
    assert match[0] == "a"


@pytest.mark.parametrize(
    "pattern",
    [
        "a(?=b)",
        "(?<!a)b",
        "(?>a)",
        r"(a)\1",
        "(?P=n)",
        "a*+",
        "a**",
        "a{2}{3}",
        "*a",
        "(*a)",
        "a|*",
        "(",
        ")",
        "[a",
        "[z-a]",
        "[[:nope:]]",
        r"x\Z",
        r"\u0041",
        r"\C",
        r"a\\\C",
        "\\",
        "(?x)a",
        "(?#c)",
        "a{1001}",
        "a{3,2}",
        "((a{100}){100})",
        r"\x{110000}",
        "a" * (LONGEST + 1),
    ],
)
def test_what_re2_has_not_is_refused(pattern: str) -> None:
    with pytest.raises(WrongRegex):
        compile_re2(pattern)


@given(st.text(r"ab01^$.|()[]{}*+?\-:P<>=!isU,QEdxz", max_size=25))
def test_every_text_compiles_or_is_refused(text: str) -> None:
    with contextlib.suppress(WrongRegex):
        compile_re2(text)
