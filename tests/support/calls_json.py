"""JSON documents as clients write them: any spacing, keys more than once."""

from __future__ import annotations

from typing import TypeAlias

from hypothesis import strategies as st

BLANKS = st.sampled_from(["", "", "", " ", "\n", "\t ", "\r\n  "])
STRINGS = st.sampled_from(
    ['"a"', '"b"', '"model"', '"\\u0061"', '"é"', '"x\\"y"', '"\\\\"', '"[{,:}]"', '"' + "long " * 30 + '"']
)
SCALARS = STRINGS | st.sampled_from(
    ["1", "-0", "1e400", "12345678901234567890123", "1.50", "true", "false", "null"]
)

Texts: TypeAlias = st.SearchStrategy[str]


@st.composite
def _array(draw: st.DrawFn, inner: Texts) -> str:
    items = draw(st.lists(st.tuples(BLANKS, inner, BLANKS), max_size=4))
    return f"[{','.join(map(''.join, items)) or draw(BLANKS)}]"


@st.composite
def _object(draw: st.DrawFn, inner: Texts) -> str:
    items = draw(st.lists(st.tuples(BLANKS, STRINGS, BLANKS, BLANKS, inner, BLANKS), max_size=5))
    members = (f"{a}{key}{b}:{c}{value}{d}" for a, key, b, c, value, d in items)
    return f"{{{','.join(members) or draw(BLANKS)}}}"


VALUES: Texts = st.recursive(SCALARS, lambda inner: _array(inner) | _object(inner), max_leaves=12)
OBJECTS: Texts = st.tuples(BLANKS, _object(VALUES), BLANKS).map("".join)
ARRAYS: Texts = st.tuples(BLANKS, _array(VALUES), BLANKS).map("".join)
