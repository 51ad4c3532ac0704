"""What each word of the schema lets through."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from llamaswap.tools.schema_words import (
    DEFINITIONS,
    Schema,
    anything,
    flag,
    named,
    number,
    one_of,
    priority,
    section,
    text,
    texts,
    wait,
)

TEXT = text("")
WHOLE = number("", least=0, most=9)
FLAG = flag("")
CHOICE = one_of("", "a", "b")
LIST = texts("")
SECTION = section("", {"a": TEXT, "b": TEXT}, "a")
NAMED = named("", {"type": "integer"})
WAIT = wait("")
LONG_WAIT = wait("", least=5)
PRIORITY = priority("")


def each(schema: Schema, *values: object) -> list[tuple[Schema, object]]:
    return [(schema, value) for value in values]


def accepts(schema: Schema, value: Any) -> bool:
    return Draft202012Validator({**schema, "$defs": dict(DEFINITIONS)}).is_valid(value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        *each(TEXT, "", "x", 1, 1.5, True),
        *each(WHOLE, 0, 9, 1.5, "${n}", "${env.N}"),
        *each(FLAG, True, False, "yes", "OFF", "${on}"),
        *each(CHOICE, "a", "b", "${c}"),
        *each(LIST, [], ["x", 1, None]),
        *each(SECTION, {"a": "x"}, {"a": None, "b": 1}),
        *each(NAMED, {}, {"anything": 1}),
        *each(WAIT, 0, 2.5, "0", "30s", "+1m30s", ".5h", "${t}"),
        *each(LONG_WAIT, 0, 5, "5s"),
        *each(PRIORITY, -100, 0, 2**62, "batch", "${p}"),
        (anything(""), {"a": [1, {"b": None}]}),
    ],
)
def test_what_the_loader_understands_is_accepted(schema: Schema, value: object) -> None:
    assert accepts(schema, value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        *each(TEXT, [], {}),
        *each(WHOLE, -1, 10, "5", True, []),
        *each(FLAG, 1, "maybe", "TRUE", []),
        *each(CHOICE, "c", 1),
        *each(LIST, "x", [["x"]]),
        *each(SECTION, {}, {"a": 1, "c": 1}, []),
        *each(NAMED, {"a": "x"}, []),
        *each(WAIT, -1, "-1s", "30", "30 s", "soon", True, []),
        *each(LONG_WAIT, 4, -1),
        *each(PRIORITY, 1.5, "Batch", "5", True, []),
        (anything(""), []),
    ],
)
def test_what_it_does_not_is_rejected(schema: Schema, value: object) -> None:
    assert not accepts(schema, value)


@pytest.mark.parametrize(
    "schema", [TEXT, WHOLE, FLAG, CHOICE, LIST, SECTION, NAMED, WAIT, PRIORITY, anything("")]
)
def test_null_means_not_given(schema: Schema) -> None:
    assert accepts(schema, None)


def test_a_section_that_needs_something_can_refuse_null() -> None:
    assert not accepts(section("", {"a": TEXT}, "a", null=False), None)


def test_an_inherited_flag_has_no_default() -> None:
    assert "default" not in flag("", default=None)
    assert flag("", default=True)["default"] is True
