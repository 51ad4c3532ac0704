"""Single keys of a JSON body, set and deleted."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.calls.document import MOST_MEMBERS
from llamaswap.calls.edits import MOST_PADDING, Edit, EditFailed, edit_json
from support.calls_json import ARRAYS, OBJECTS

UNTOUCHED = '{ "b":1e400, "model":"m1",  "n":12345678901234567890123, "u":"\\u00e9é", "z":[ ] }'


def edited(body: str, *edits: str) -> str:
    """Each edit is `key=json`, or `-key`."""
    parsed = [
        Edit(edit[1:]) if edit[0] == "-" else Edit(edit.partition("=")[0], edit.partition("=")[2].encode())
        for edit in edits
    ]
    return edit_json(body.encode(), parsed).decode()


@pytest.mark.parametrize(
    ("body", "edit", "after"),
    [
        ('{"model":"m1","top_p":0.1}', "top_p=0.9", '{"model":"m1","top_p":0.9}'),
        ('{"a":1,"model":  "use"}', 'model="real"', '{"a":1,"model":  "real"}'),
        ('{ "x":1 , "model" : "public" }', 'model="m1"', '{ "x":1 , "model" : "m1" }'),
        ('{"mo\\u0064el":"m"}', 'model="n"', '{"mo\\u0064el":"n"}'),
        ('{"model":1,"model":2}', "model=3", '{"model":3,"model":2}'),
        ('{"a":{"b":1}}', "a.c=2", '{"a":{"b":1,"c":2}}'),
        ('{"x":{"y":9,"k":1}}', "x.y=3", '{"x":{"y":3,"k":1}}'),
        ('{"x":5,"t":1}', "x.y=3", '{"x":{"y":3},"t":1}'),
        ('{"x":null}', "x.0=3", '{"x":[3]}'),
        ("{}", "s.t=1", '{"s":{"t":1}}'),
        (" { } \n", "a=1", ' { "a":1} \n'),
        ('{"a":1 }', "b=2", '{"a":1 ,"b":2}'),
        ("{}", "a\\.b=1", '{"a.b":1}'),
        ("{}", 'a"b=1', '{"a\\"b":1}'),
        ('{"a":[ 1, 2 ]}', "a.0=9", '{"a":[ 9, 2 ]}'),
        ('{"a":[1]}', "a.-1=2", '{"a":[1,2]}'),
        ('{"a":[]}', "a.-1=2", '{"a":[2]}'),
        ('{"a":[1]}', "a.3=2", '{"a":[1,null,null,2]}'),
        ('{"a":[{"b":1}]}', "a.0.b=2", '{"a":[{"b":2}]}'),
        ("{}", "a.2=1", '{"a":[null,null,1]}'),
        ("{}", "a.-1.b=1", '{"a":[{"b":1}]}'),
        ("{}", "a.:0=1", '{"a":{"0":1}}'),
        ('{"a":{"0":1}}', "a.0=2", '{"a":{"0":2}}'),
        ('{"a":{}}', "a.-1=2", '{"a":{"-1":2}}'),
        ("\ufeff{}", "a=1", '\ufeff{"a":1}'),
    ],
)
def test_a_key_is_set_where_it_stands_and_else_at_the_end(body: str, edit: str, after: str) -> None:
    assert edited(body, edit) == after


@pytest.mark.parametrize(
    ("body", "edit", "after"),
    [
        ('{"a":1,"b":2}', "-a", '{"b":2}'),
        ('{"a":1,"b":2}', "-b", '{"a":1}'),
        ('{ "a" : 1 , "b":2}', "-a", '{ "b":2}'),
        ('{"a":1 , "b":2 }', "-b", '{"a":1  }'),
        ('{ "a":1 }', "-a", "{ }"),
        ('{"a":{"b":1}}', "-a.b", '{"a":{}}'),
        ('{"a":1,"a":2}', "-a", '{"a":2}'),
        ('{"a":[1,2,3]}', "-a.1", '{"a":[1,3]}'),
        ('{"a":[1,2,3]}', "-a.-1", '{"a":[1,2]}'),
    ],
)
def test_a_key_is_deleted_with_one_comma(body: str, edit: str, after: str) -> None:
    assert edited(body, edit) == after


@pytest.mark.parametrize(
    "edit", ["-q", "-b.c", "-z.0", "-z.-1", "-u.x.y", "-n.0", "any*=1", "a.#=1", "x|y=1", "-q.r"]
)
def test_what_changes_nothing_gives_the_very_same_body(edit: str) -> None:
    body = UNTOUCHED.encode()
    key, _, text = edit.partition("=")
    done = edit_json(body, [Edit(key[1:]) if edit[0] == "-" else Edit(key, text.encode())])
    assert done is body


def test_untouched_text_survives_around_the_edits() -> None:
    assert edited(UNTOUCHED, 'model="x"', "k=1") == UNTOUCHED.replace('"m1"', '"x"').replace(" }", ' ,"k":1}')


def test_edits_are_carried_out_in_order() -> None:
    body = '{"model":"author/m2","temperature":1,"a":{"b":1,"c":2},"z":[1, 2]}'
    after = edited(body, 'model="real-name"', "-a.b", "-temperature", "top_p=0.9", "x.y=3")
    assert after == '{"model":"real-name","a":{"c":2},"z":[1, 2],"top_p":0.9,"x":{"y":3}}'
    assert edited(body, "top_p=1", "-top_p") == body
    assert edited("{}", "a.b=1", "a.c=2", "a.b=3") == '{"a":{"b":3,"c":2}}'
    assert edited('{"a":1}', "-a", "a=2") == '{"a":2}'


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        ("-a*", "a search cannot be deleted"),
        ("arr.x=1", "'x' is no index of an array"),
        ("=1", "it has no name"),
        (f"arr.{MOST_PADDING + 2}=1", "behind the end"),
        (f"new.{MOST_PADDING + 1}=1", "behind the end"),
    ],
)
def test_an_impossible_edit_names_its_parameter(edit: str, why: str) -> None:
    with pytest.raises(EditFailed, match=why) as caught:
        edited('{"arr":[1]}', edit)
    assert repr(edit.strip("-").partition("=")[0]) in caught.value.message
    assert caught.value.status == 500


@pytest.mark.parametrize(
    "body",
    [
        "",
        "null",
        "[1]",
        '"text"',
        "{",
        '{"model":"m1", broken',
        '{"a":NaN}',
        '{"model":"m1"} x',
        "a{}",
        '{"a":' + "[" * 200_000 + "]" * 200_000 + "}",
    ],
)
def test_a_body_that_cannot_be_read_is_left_alone(body: str) -> None:
    data = body.encode()
    assert edit_json(data, [Edit("model", b"1"), Edit("x.y", b"2"), Edit("b")]) is data


def test_half_a_character_that_is_written_out_survives() -> None:
    body = rb'{"model":"p/m","messages":[{"role":"user","content":"cut \ud83d"}]}'

    after = edit_json(body, [Edit("model", b'"m"'), Edit("messages.0.role", b'"system"')])

    assert after == rb'{"model":"m","messages":[{"role":"system","content":"cut \ud83d"}]}'


def test_broken_bytes_inside_a_string_survive() -> None:
    assert edit_json(b'{"a":"\xff","b":1}', [Edit("b", b"2")]) == b'{"a":"\xff","b":2}'


def put(document: dict[str, Any], path: list[str], value: Any) -> None:
    for key in path[:-1]:
        if not isinstance(document.get(key), dict):
            document[key] = {}
        document = document[key]
    document[path[-1]] = value


def drop(document: dict[str, Any], path: list[str]) -> None:
    for key in path[:-1]:
        inner = document.get(key)
        if not isinstance(inner, dict):
            return
        document = inner
    document.pop(path[-1], None)


KEYS = st.sampled_from(["a", "b", "model", "é", "0"])
DOCUMENTS = st.dictionaries(
    KEYS,
    st.recursive(st.integers() | st.text(), lambda inner: st.dictionaries(KEYS, inner, max_size=4)),
    max_size=5,
)


@given(
    DOCUMENTS,
    st.lists(st.tuples(st.lists(KEYS, min_size=1, max_size=3), st.booleans()), max_size=5),
    st.sampled_from([None, 1]),
)
def test_edits_do_to_the_text_what_they_would_do_to_a_dictionary(
    document: dict[str, Any], changes: list[tuple[list[str], bool]], indent: int | None
) -> None:
    body = json.dumps(document, indent=indent, ensure_ascii=indent is None)
    edits = []
    for path, deletes in changes:
        forced = ".".join(f":{key}" for key in path)  # "0" is a key here, not an index
        edits.append(f"-{forced}" if deletes else f"{forced}=77")
        if deletes:
            drop(document, path)
        else:
            put(document, path, 77)

    assert json.loads(edited(body, *edits), object_pairs_hook=list) == json.loads(
        json.dumps(document), object_pairs_hook=list
    )


@given(OBJECTS | ARRAYS, st.sampled_from(["a", "b", "a.b", "a.0", "b.-1", "model.a.b", "x\\.y"]))
def test_whatever_is_edited_stays_json_and_a_second_time_changes_nothing(text: str, path: str) -> None:
    try:
        once = edited(text, f"{path}=[7]")
        json.loads(once)
        if not path.endswith("-1"):
            assert edited(once, f"{path}=[7]") == once
    except EditFailed:
        assert "[" in text
    json.loads(edited(text, f"-{path}"))


def test_an_edit_of_twenty_megabytes_is_a_matter_of_milliseconds() -> None:
    image = b"A" * 20_000_000
    quotes = b'\\"' * 10_000_000
    for long in (image, quotes):
        body = b'{"messages":[{"content":[{"url":"%b"}]}],"model":"m"}' % long
        began = time.perf_counter()
        after = edit_json(body, [Edit("model", b'"n"')])
        lasted = time.perf_counter() - began
        assert len(after) == len(body)
        assert after.endswith(b'"model":"n"}')
        assert lasted < 1  # 0.02 s on an idle machine; a walk over the characters takes several seconds


@pytest.mark.parametrize(
    "junk",
    [b'"x":' + b"[" * 3000 + b"]" * 3000, b",".join(b'"x%d":1' % n for n in range(MOST_MEMBERS + 1))],
    ids=["deep", "wide"],
)
def test_a_body_that_is_too_deep_or_too_wide_is_left_alone(junk: bytes) -> None:
    body = b'{"max_tokens":9,' + junk + b"}"

    assert edit_json(body, [Edit("max_tokens", b"1")]) is body
