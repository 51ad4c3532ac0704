"""What an expression allows, in which order, as far as a question goes."""

from __future__ import annotations

from llamaswap.config.matrix_sets import parse_set
from llamaswap.scheduling.projections import Bits, Projection, compile_shape

BITS = {name: 1 << place for place, name in enumerate("abcdt")}


def bits(names: str) -> Bits:
    return sum(BITS[name] for name in names)


def names(family: Bits) -> str:
    return "".join(name for name, bit in BITS.items() if family & bit)


def question(asked: str, **costs: int) -> Projection:
    return Projection(BITS["t"], {BITS[name]: costs.get(name, 1) for name in asked})


def families(text: str, asked: str = "abcd") -> list[str]:
    shape = compile_shape(parse_set(text), BITS, {})
    return [names(family) for family in question(asked).families(shape)]


def best(text: str, asked: str = "abcd", **costs: int) -> str:
    return names(question(asked, **costs).best(compile_shape(parse_set(text), BITS, {})))


def test_a_model_is_one_family() -> None:
    assert families("a") == ["a"]


def test_alternatives_stand_in_their_order() -> None:
    assert families("b | a | c") == ["b", "a", "c"]


def test_unions_stand_in_the_order_of_the_first_part_then_the_second() -> None:
    assert families("(a | b) & (c | d)") == ["ac", "ad", "bc", "bd"]


def test_what_nobody_asks_about_is_not_there() -> None:
    assert families("(a | b) & (c | d)", "ac") == ["ac"]
    assert families("b", "a") == [""]
    assert families("b | d", "a") == [""]


def test_a_part_of_another_family_goes_and_the_larger_one_keeps_its_own_place() -> None:
    assert families("a | b | a & c") == ["b", "ac"]
    assert families("a & c | b | a") == ["ac", "b"]


def test_the_same_family_again_changes_nothing() -> None:
    assert families("a | b | a") == ["a", "b"]
    assert families("(a | b) & (a | b)") == ["ab"]


def test_the_worth_is_what_unloading_would_cost() -> None:
    costs = question("abc", b=5)

    assert costs.worth(bits("abd")) == 6
    assert costs.worth(0) == 0


def test_the_target_is_worth_more_than_everything_else_together() -> None:
    costs = question("abcd", a=100)

    assert costs.worth(bits("t")) > costs.worth(bits("abcd"))


def test_the_best_family_is_the_first_of_those_worth_most() -> None:
    assert best("a | b | c") == "a"
    assert best("a | b & c | c & d") == "bc"
    assert best("a | b & c", a=3) == "a"


def test_the_best_family_has_the_target_if_any_has() -> None:
    assert best("a & b & c | t") == "t"
    assert best("(a | t) & (b | c)") == "bt"


def test_parts_that_share_a_model_are_chosen_together() -> None:
    assert best("(t | a) & (b | a)", a=2) == "at"
    assert best("(a | b) & (a | c) & t") == "act"


def test_parts_are_entangled_through_others() -> None:
    assert best("(a | t) & (c | b) & (a | c)", "abc") == "act"
