"""The matrix section."""

from __future__ import annotations

import pytest

from support.config_checks import TWO_MODELS, loaded, rejected


def matrix_complaints(text: str) -> list[str]:
    return [line.partition(": ")[2] for line in rejected(f"{TWO_MODELS}\nmatrix: {text}")]


def test_a_matrix_is_read_with_real_ids_and_its_sets_in_natural_order() -> None:
    config = loaded(
        TWO_MODELS
        + "\nmatrix: {vars: {x: a}, evict_costs: {x: 5, b: 2.9}, sets: {s10: x & b, s9: '+s10', 7: b}}"
    )
    assert config.router == "matrix"
    assert config.groups == ()
    assert config.matrix is not None
    assert dict(config.matrix.vars) == {"x": "a"}
    assert dict(config.matrix.costs) == {"a": 5, "b": 2}
    assert config.matrix.sets == (("7", "b"), ("s9", "+s10"), ("s10", "x & b"))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{}", "matrix.sets: expected at least one set"),
        ("{sets: {s: zz}}", "matrix.sets.s: 'zz' is no variable or model id"),
        ("{sets: {s: bee}}", "matrix.sets.s: 'bee' is no variable or model id"),
        ("{sets: {s: +t}}", "matrix.sets.s: 't' is no set"),
        ("{sets: {s: +s}}", "matrix.sets.s: the set 's' refers to itself"),
        ("{sets: {s: ~}}", "matrix.sets.s: expected an expression, got nothing"),
        ("{sets: {s: [a]}}", "matrix.sets.s: expected text, got a list"),
        ("{vars: {x_1: a}, sets: {s: a}}", "matrix.vars.x_1: expected 1 to 32"),
        ("{vars: {x: bee}, sets: {s: a}}", "matrix.vars.x: 'bee' is no model id"),
        ("{evict_costs: {a: 0.5}, sets: {s: a}}", "matrix.evict_costs.a: expected a cost from 1, got 0"),
        ("{evict_costs: {bee: 2}, sets: {s: a}}", "matrix.evict_costs.bee: 'bee' is no variable or model id"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, complaint: str) -> None:
    assert matrix_complaints(text)[0].startswith(complaint)


def test_all_mistakes_of_a_matrix_are_reported() -> None:
    assert len(matrix_complaints("{vars: {x: q}, evict_costs: {y: 1}, sets: {s: a &, t: z}}")) == 4
