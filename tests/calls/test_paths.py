"""Dotted paths into a JSON document."""

from __future__ import annotations

import pytest

from llamaswap.calls.paths import Step, parse_path


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("a", [Step("a")]),
        ("a.b", [Step("a"), Step("b")]),
        ("a.0", [Step("a"), Step("0", 0)]),
        ("a.-1", [Step("a"), Step("-1", is_end=True)]),
        ("a.-2", [Step("a"), Step("-2")]),
        ("a\\.b", [Step("a.b")]),
        ("a\\\\.b", [Step("a\\"), Step("b")]),
        ("a\\*", [Step("a*")]),
        ("a.:0", [Step("a"), Step("0")]),
        (":-1", [Step("-1")]),
        ("::a", [Step(":a")]),
        ("a:b", [Step("a:b")]),
        ("a\\.:b", [Step("a.:b")]),
        ("a.", [Step("a"), Step("")]),
        ("²", [Step("²")]),
        ("a\\", [Step("a")]),
    ],
)
def test_a_key_is_taken_apart_at_its_dots(text: str, steps: list[Step]) -> None:
    assert parse_path(text) == tuple(steps)


@pytest.mark.parametrize("text", ["a*", "a.?", "#", "a|b", "a.#.b", "@this"])
def test_a_search_is_no_path(text: str) -> None:
    assert parse_path(text) is None


@pytest.mark.parametrize(("text", "array"), [("0", True), ("-1", True), ("a", False), (":0", False)])
def test_numbers_and_the_end_want_an_array(text: str, array: bool) -> None:
    path = parse_path(text)
    assert path is not None
    assert path[0].wants_array is array
