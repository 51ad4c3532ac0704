"""Configured values as JSON text."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.calls.json_text import MOST_NESTED, json_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.9, "0.9"),
        (1.0, "1"),
        (-0.0, "-0"),
        (100.0, "100"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1e-6, "0.000001"),
        (1.5e-7, "1.5e-7"),
        (1e-10, "1e-10"),
        (2**70, "1180591620717411303424"),
        (True, "true"),
        (None, "null"),
        ([1, {"q": None}], '[1,{"q":null}]'),
        ((), "[]"),
        (MappingProxyType({"b": 1, "a": {}}), '{"a":{},"b":1}'),
        ("<é>", '"\\u003cé\\u003e"'),
        ("<b>", '"<b>"'),
        (["<b>&"], '["\\u003cb\\u003e\\u0026"]'),
        ('say "hi"\n\\', '"say \\"hi\\"\\n\\\\"'),
        ("\x01\u2028", '"\\u0001\\u2028"'),
    ],
)
def test_values_are_spelt_as_go_spells_them(value: Any, text: str) -> None:
    assert json_text(value).decode() == text


@given(VALUES)
def test_every_value_reads_back_as_it_was(value: Any) -> None:
    assert json.loads(json_text(value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_reads_back_as_it_was(value: float) -> None:
    assert float(json.loads(json_text(value))) == value


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": object()}, {1}])
def test_what_json_cannot_say_is_an_error(value: Any) -> None:
    with pytest.raises(ValueError, match="has no JSON form"):
        json_text(value)


def test_a_bottomless_value_is_an_error() -> None:
    value: Any = 1
    for _ in range(MOST_NESTED):
        value = [value]
    assert json_text(value).startswith(b"[[[")
    with pytest.raises(ValueError, match="deep"):
        json_text([value])
