"""How values are spelt as text."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.config.mistakes import Place
from llamaswap.config.nodes import Mapping, Plain, Scalar, Sequence, describe, spell


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (8, "8"),
        (1.5, "1.5"),
        (1000000.0, "1e+06"),
        (999999.5, "999999.5"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (123456789.123, "1.23456789123e+08"),
        (-0.25, "-0.25"),
        (100.0, "100"),
        (0.0, "0"),
        (math.inf, ".inf"),
        (-math.inf, "-.inf"),
        (math.nan, ".nan"),
    ],
)
def test_a_value_is_spelt_as_go_spells_it(value: Plain, text: str) -> None:
    assert spell(value) == text


@given(st.floats(allow_nan=False))
def test_no_float_loses_anything_in_its_spelling(value: float) -> None:
    assert float(spell(value).replace(".inf", "inf")) == value


def test_a_complaint_names_shapes_and_shortens_texts() -> None:
    place = Place("f")
    assert describe(Sequence(place)) == "a list"
    assert describe(Mapping(place)) == "a mapping"
    assert describe(Scalar(place, None)) == "nothing"
    assert describe(Scalar(place, "soon")) == "'soon'"
    assert len(describe(Scalar(place, "x" * 1000))) == 60


def test_a_key_is_found_under_its_spelling() -> None:
    place = Place("f")
    node = Mapping(place, ((Scalar(place, 7, "0x7"), Scalar(place, "seven")),))
    assert node.get("7") == Scalar(place, "seven")
    assert node.get("0x7") is None
