"""The eviction rules of a matrix: what people trip over, and everything held against the book."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.config.model import MatrixConfig
from llamaswap.scheduling import projections
from llamaswap.scheduling.matrix import MOST_ANSWERS, MatrixPlanner
from llamaswap.scheduling.projections import FEW_FAMILIES
from support.scheduling_matrix import evicted, evicted_by_the_book, matrix

MODELS = "abcdefg"
WIDE = "abcdefghijklmn"


def test_a_model_that_runs_evicts_nobody() -> None:
    assert evicted("a", "ab", {"s": "a | b"}) == ""


def test_models_of_one_set_stay_together() -> None:
    assert evicted("a", "b", {"s": "a & b"}) == ""
    assert evicted("a", "bc", {"s": "a & b | c"}) == "c"


def test_a_set_allows_every_part_of_itself() -> None:
    assert evicted("a", "c", {"s": "a & b & c"}) == ""


def test_a_model_in_no_set_runs_alone() -> None:
    assert evicted("m", "ab", {"s": "a & b"}) == "ab"
    assert evicted("a", "bm", {"s": "a & b"}) == "m"


def test_a_larger_family_counts_and_not_the_smaller_one_it_contains() -> None:
    assert evicted("t", "pq", {"s": "t & (p | p & q)"}) == ""


def test_the_cheaper_eviction_wins() -> None:
    sets = {"s": "t & (a | b)"}

    assert evicted("t", "ab", sets, a=3) == "b"
    assert evicted("t", "ab", sets, b=3) == "a"


def test_two_cheap_models_go_before_a_dear_one() -> None:
    assert evicted("t", "abc", {"s": "t & (a | b & c)"}, a=5) == "bc"


def test_of_equal_sets_the_first_one_counts() -> None:
    assert evicted("a", "bc", {"y": "a & c", "z": "a & b"}) == "b"
    assert evicted("a", "bc", {"z": "a & b", "y": "a & c"}) == "c"


def test_inside_a_set_a_family_stands_where_it_came_first_at_its_full_size() -> None:
    assert evicted("t", "abc", {"s": "t & (a | b | a & c)"}, b=2) == "ac"


def test_a_set_comes_before_the_one_that_refers_to_it() -> None:
    assert evicted("a", "bc", {"x": "a & b | +y", "y": "a & c"}) == "b"


def test_a_referenced_set_is_part_of_the_expression() -> None:
    sets = {"pair": "a | b", "all": "+pair & c"}

    assert evicted("c", "ab", sets) == "b"
    assert evicted("b", "c", sets) == ""


def test_a_variable_hides_the_model_of_its_name() -> None:
    planner = MatrixPlanner(MatrixConfig(vars={"b": "a"}, sets=(("s", "b & c"),)))

    assert planner.make_room("a", frozenset("c")) == frozenset()
    assert planner.make_room("b", frozenset("c")) == frozenset("c")


def test_models_of_independent_parts_are_chosen_one_by_one() -> None:
    sets = {"s": "(a | b) & (c | d) & (e | f)"}

    assert evicted("a", "bcf", sets) == "b"
    assert evicted("a", "bcdef", sets, d=2) == "bcf"


def test_a_million_combinations_are_never_written_out() -> None:
    expression = " & ".join(f"(l{number} | r{number})" for number in range(20))
    planner = MatrixPlanner(matrix({"s": expression}))
    running = frozenset(f"{side}{number}" for number in range(1, 20) for side in "lr")

    assert planner.make_room("l0", running) == {f"r{number}" for number in range(1, 20)}


def test_hundreds_of_sets_may_refer_to_each_other_in_a_chain() -> None:
    sets = {"s0": "a | b"} | {f"s{number}": f"+s{number - 1} & (a | b)" for number in range(1, 500)}

    assert evicted("a", "b", sets) == ""
    assert evicted("a", "bc", sets) == "c"


def test_where_too_many_families_are_entangled_the_answer_is_still_allowed() -> None:
    ring = [f"m{number}" for number in range(26)]
    links = list(zip(ring, ring[1:] + ring[:1], strict=True))
    sets = {"s": " & ".join(f"({one} & {other} | x{one})" for one, other in links)}
    running = frozenset(ring[1:] + [f"x{one}" for one in ring])

    kept = running - MatrixPlanner(matrix(sets)).make_room("m0", running)

    joined = {model for link in links if f"x{link[0]}" not in kept for model in link}
    assert {model for model in kept | {"m0"} if model in ring} <= joined


def test_it_tells_which_sets_a_model_is_in() -> None:
    planner = MatrixPlanner(matrix({"pair": "a | b", "all": "+pair & c", "other": "d"}))

    assert planner.sets_with("a") == ("pair", "all")
    assert planner.sets_with("d") == ("other",)
    assert planner.sets_with("nobody") == ()


def test_a_question_may_come_again_and_after_many_others() -> None:
    planner = MatrixPlanner(matrix({"s": "t & (a | b)"}))
    asked = "t", frozenset({"a", "b"})
    first = planner.make_room(*asked)
    for number in range(MOST_ANSWERS + 10):
        planner.make_room("t", frozenset({f"m{number}"}))

    assert planner.make_room(*asked) == first == {"b"}


names = st.sampled_from(MODELS)


def expressions(referable: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    atoms = names if not referable else st.one_of(names, st.sampled_from([f"+{one}" for one in referable]))
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.lists(inner, min_size=2, max_size=4).map(lambda parts: f"({' | '.join(parts)})"),
            st.lists(inner, min_size=2, max_size=4).map(lambda parts: f"({' & '.join(parts)})"),
        ),
        max_leaves=14,
    )


@st.composite
def matrices(draw: st.DrawFn) -> MatrixConfig:
    sets = {"m": draw(expressions())}
    sets["k"] = draw(expressions(("m",)))
    sets["z"] = draw(expressions(("m", "k")))
    order = draw(st.permutations(list(sets)))
    costs = draw(st.dictionaries(names, st.integers(1, 4), max_size=4))
    return MatrixConfig(sets=tuple((name, sets[name]) for name in order), costs=MappingProxyType(costs))


@settings(max_examples=300, deadline=None)
@given(matrices(), names, st.frozensets(names), st.sampled_from((0, FEW_FAMILIES)))
def test_the_planner_and_the_book_agree(
    config: MatrixConfig, target: str, running: frozenset[str], few: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projections, "FEW_FAMILIES", few)
        answer = MatrixPlanner(config).make_room(target, running)

    assert answer == evicted_by_the_book(target, running, config)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.permutations(WIDE).map(lambda models: models[:5]), min_size=3, max_size=3), st.data())
def test_they_agree_where_there_is_much_to_choose_from(parts: list[list[str]], data: st.DataObject) -> None:
    config = matrix({"s": " & ".join(f"({' | '.join(part)})" for part in parts)}, a=2, b=3)
    running = frozenset(WIDE) - data.draw(st.frozensets(st.sampled_from(WIDE), min_size=1, max_size=2))
    target = min(frozenset(WIDE) - running)

    answer = MatrixPlanner(config).make_room(target, running)

    assert answer == evicted_by_the_book(target, running, config)
