"""Which model a JSON body names, valid or not."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.calls.peek import Peek, peek_json

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("body", "model"),
    [
        ('{"model":"m1"}', "m1"),
        (' \r\n\t{ "model" : "m1" } ', "m1"),
        ('{"model":"author/model-7b","messages":[]}', "author/model-7b"),
        ('{"model":123}', "123"),
        ('{"model":1.50}', "1.50"),
        ('{"model":true}', "true"),
        ('{"model":false}', "false"),
        ('{"model":{"a": 1}}', '{"a": 1}'),
        ('{"model":["m1"]}', '["m1"]'),
        ('{"model":null}', ""),
        ('{"model":""}', ""),
        ("{}", ""),
        ('["model","m1"]', ""),
        ('[{"model":"m1"}]', ""),
        ('"m1"', ""),
        ("not-json", ""),
        ("", ""),
        ("null", ""),
        ('{"Model":"m1"}', ""),
        ('{"x":{"model":"inner"}}', ""),
        ('{"x":{"model":"inner"},"model":"outer"}', "outer"),
        ('{"x":"model","model":"outer"}', "outer"),
        ('{"x":["model","model"],"model":"outer"}', "outer"),
        ('{"x":"\\"model\\":\\"inner\\"","model":"outer"}', "outer"),
        ('{"model":"a\\u0062\\n\\"c"}', 'ab\n"c'),
        ('{"model":"\\ud83d\\ude00"}', "\U0001f600"),
        ('{"model":"größe"}', "größe"),
        ('{"model":"\\ud800"}', "\ud800"),
    ],
)
def test_the_model_is_the_top_level_one_as_text(body: str, model: str) -> None:
    assert peek_json(body.encode()).model == model


@pytest.mark.parametrize(
    ("body", "model"),
    [
        ('{"model":"first","model":"second"}', "first"),
        ('{"model":"first","x":{"model":"inner"},"model":"second"}', "first"),
        ('{"x":{"model":"inner"},"model":"first","model":"second"}', "first"),
        ('{"model":null,"model":"second"}', ""),
    ],
)
def test_of_a_key_said_twice_the_first_counts(body: str, model: str) -> None:
    assert peek_json(body.encode()).model == model


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"m1", broken',
        b'{"model":"m1"',
        b'{"model":"m1",',
        b'{"model":"m1"} and more',
        b'{"model":"m1","x":"\xff\xfe"}',
        b'{"model":"m1","x":01}',
        b'{"model":"m1","x":NaN}',
        b'{"x":[1,{"y":"]}"}],"model":"m1","z":[',
        b'{"x":"\\"}","model":"m1",}',
        b'{"x":' + b"[" * 5_000 + b"]" * 5_000 + b',"model":"m1"}',
        b'\xef\xbb\xbf{"model":"m1"}',
    ],
)
def test_a_document_that_is_not_quite_json_still_names_its_model(body: bytes) -> None:
    assert peek_json(body).model == "m1"


@pytest.mark.parametrize(
    "body",
    [
        b'{"x" 1,"model":"m1"}',
        b'{"x":[1,"model":"m1"}',
        b'{"x":"never ends,"model":"m1"}',
        b'{"model":"never ends',
        b'{"model":"\xff"}',
        b'{,"model":"m1"}',
        b"\xff\xfe{\x00",
    ],
)
def test_what_comes_behind_a_break_is_not_looked_for(body: bytes) -> None:
    assert peek_json(body) == Peek("", stream=False)


@pytest.mark.parametrize(
    ("value", "stream"),
    [
        ("true", True),
        ("false", False),
        ("null", False),
        ("1", True),
        ("0", False),
        ("0.0", False),
        ("-1", True),
        ('"true"', True),
        ('"True"', True),
        ('"1"', True),
        ('"yes"', False),
        ('"false"', False),
        ('""', False),
        ("{}", False),
        ("[]", False),
    ],
)
def test_streaming_is_switched_on_by_a_truth(value: str, *, stream: bool) -> None:
    assert peek_json(f'{{"model":"m","stream":{value}}}'.encode()) == Peek("m", stream)


@given(
    st.dictionaries(
        st.sampled_from(["model", "stream", "x", "mod", 'mo"del', "\\"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["model", "stream"]), inner),
            max_leaves=8,
        ),
    )
)
def test_valid_objects_are_read_as_any_json_reader_would(document: dict[str, object]) -> None:
    model = document.get("model")
    found = peek_json(json.dumps(document).encode()).model
    if isinstance(model, str):
        assert found == model
    elif model is None:
        assert found == ""
    else:
        assert json.loads(found) == model


def test_half_a_character_that_is_written_out_hides_no_model_behind_it() -> None:
    body = rb'{"messages":["cut \ud83d","%b"],"model":"m","stream":true}' % bytes(2_000_000).hex().encode()

    assert peek_json(body) == Peek("m", stream=True)


@given(st.binary(max_size=60))
def test_no_bytes_at_all_can_raise(body: bytes) -> None:
    peek_json(body)
    peek_json(b'{"model":' + body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"x":"' + b"\\" * (15 * MILLION),
        b'{"x":"' + b'\\"' * (7 * MILLION),
        b'{"x":"' + b"\\ud800" * (5 * MILLION // 2),
        b'{"x":"' + b"\\ud800" * 90_000 + b"x" * (14 * MILLION),
        b'{"x":' + b'"' * (15 * MILLION),
        b"[" * (15 * MILLION),
        b'{"x":' + b"[" * (15 * MILLION),
        b'{"x":' + b"[1," * (5 * MILLION),
        b'{"x":' + b'["' * (7 * MILLION),
        b" " * (15 * MILLION),
        b"{" + b'"a":1,' * (2 * MILLION) + b"!",
        b'{"model":"m","model":"m","x":"' + b"x" * (15 * MILLION),
        b'{"model":"m","x":{"model":1},' + b",".join(b'"%x":1' % n for n in range(3 * MILLION // 2)) + b"}",
    ],
    ids=[
        "backslashes",
        "escaped quotes",
        "halves",
        "some halves",
        "quotes",
        "arrays",
        "inner",
        "lists",
        "strings",
        "blanks",
        "keys",
        "twice",
        "twice, other keys",
    ],
)
def test_fifteen_megabytes_of_anything_take_no_second(body: bytes) -> None:
    began = time.process_time()

    peek_json(body)

    assert time.process_time() - began < 1.0
