"""The expressions of matrix sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.config.matrix_sets import (
    Both,
    Either,
    Model,
    Reference,
    TooManyCombinations,
    WrongExpression,
    atoms,
    in_order,
    parse_set,
    together,
)


def allows(wanted: str, **sets: str) -> bool:
    return together(
        frozenset(wanted.split()), {name: parse_set(text) for name, text in sets.items()}, {"v": "c"}
    )


def test_and_binds_tighter_than_or() -> None:
    assert parse_set("a|b & +c") == Either((Model("a"), Both((Model("b"), Reference("c")))))


def test_names_may_hold_letters_digits_and_some_signs() -> None:
    assert [atom.name for atom in atoms(parse_set(" ( ü-1.5_x )\n&\t+b "))] == ["ü-1.5_x", "b"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "()",
        "a &",
        "& a",
        "a b",
        "(a",
        "a)",
        "+ a",
        "a & +",
        "!a",
        "a, b",
        "org/m",
        "a && b",
        "a&" + "(" * 99,
    ],
)
def test_what_breaks_the_grammar_is_refused(text: str) -> None:
    with pytest.raises(WrongExpression):
        parse_set(text)


def test_sets_come_after_those_they_refer_to() -> None:
    assert in_order({"a": parse_set("+b & +c"), "b": parse_set("+c"), "c": parse_set("x")}) == ("c", "b", "a")


@pytest.mark.parametrize("sets", [{"s": "+s"}, {"s": "a & +t", "t": "+u | b", "u": "+s"}])
def test_a_circle_is_found(sets: dict[str, str]) -> None:
    with pytest.raises(WrongExpression) as refusal:
        in_order({name: parse_set(text) for name, text in sets.items()})
    assert refusal.value.name in sets


def test_a_long_chain_of_sets_is_no_circle() -> None:
    sets = {f"s{n}": parse_set(f"+s{n + 1}") for n in range(5000)} | {"s5000": parse_set("x")}
    assert in_order(sets)[0] == "s5000"


def test_models_are_allowed_together_by_one_set() -> None:
    assert allows("a b", s="a & b")
    assert allows("a c", s="a & (b | v)")
    assert allows("a b c", x="(a | b) & (b | c)", z="+x & a")
    assert not allows("a b", s="a | b", t="b & c")


def test_a_product_that_is_too_large_is_not_multiplied_out() -> None:
    pairs = " & ".join(f"(m{n} | m{n + 1})" for n in range(0, 60, 2))
    with pytest.raises(TooManyCombinations):
        allows(" ".join(f"m{n}" for n in range(60)), s=pairs)


@given(st.text("ab&|()+ ", max_size=30))
def test_every_text_parses_or_is_refused(text: str) -> None:
    try:
        names = [atom.name for atom in atoms(parse_set(text))]
    except WrongExpression:
        return
    assert "".join(names) == text.translate(str.maketrans("", "", "&|()+ "))
