"""From YAML text to nodes, and what is refused on the way."""

from __future__ import annotations

import pytest

from llamaswap.config.document import DEEPEST, LARGEST, MOST_NODES, NotYaml, compose
from llamaswap.config.nodes import Alias
from support.config_nodes import at, bare, mapping, tree


def refusal(text: str) -> str:
    with pytest.raises(NotYaml) as refused:
        compose(text, at)
    return str(refused.value)


def test_nodes_know_their_place() -> None:
    (_, ttl), (name, _) = mapping("ttl:  5\nname: x\n").entries
    assert str(ttl.place) == "f:1:7"
    assert str(name.place) == "f:2:1"


def test_an_empty_text_is_no_document() -> None:
    assert compose("# nothing\n", at) is None


def test_only_the_first_document_counts() -> None:
    assert bare(tree("a: 1\n---\n[broken")) == {"a": 1}


def test_an_empty_value_is_null_in_a_block_and_text_in_a_flow_mapping() -> None:
    assert bare(tree("a:\nb: {c: , d}\ne: [~]")) == {"a": None, "b": {"c": "", "d": ""}, "e": [None]}


def test_an_alias_remembers_where_it_stands() -> None:
    (_, target), (_, alias) = mapping("a: &x 1\nb: *x\n").entries
    assert isinstance(alias, Alias)
    assert alias.target is target
    assert str(alias.place) == "f:2:4"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a:\n\tb: 1", "f:2:1"),
        ("a: *nope", "f:1:4: YAML: no anchor &nope"),
        ("a: &a [*a]", "f:1:8: YAML: &a contains itself"),
        ("a: 1\nb: 2\na: 3", "f:3:1: YAML: key 'a' is already used"),
        ("? [a]\n: 1", "f:1:3: YAML: a list or mapping can't be a key"),
        ("%YAML 1.2\n---\na: 1", "f:1:1: YAML: only version 1.1"),
        (r'a: "x\/y"', r"f:1:4: YAML: unknown escape \/"),
        ("a: !!int x", "f:1:4"),
        ("x\ny: \x00", "f:2:4: YAML: character"),
        (r'a: "\0"', "f:1:4: YAML: character '\\x00'"),
        ("a: !!binary AAA=", "f:1:4: YAML: character '\\x00'"),
        ("a: !!binary ü", "f:1:4: YAML: expected base64"),
        (r'a: "\ud800"', "f:1:4: YAML: character"),
    ],
)
def test_what_is_no_yaml_of_this_dialect_is_refused_at_its_place(text: str, where: str) -> None:
    assert refusal(text).startswith(where)


@pytest.mark.parametrize(
    "text",
    [
        r'a: "\UFFFFFFFF"',
        "%YAML 1." + "9" * 5000 + "\n---\n",
        "a: !%ff x",
        "a: !e!x y",
        "\ud800",
        "- !<%",
        "'",
    ],
)
def test_whatever_the_parser_stumbles_over_becomes_a_refusal(text: str) -> None:
    assert refusal(text).startswith("f:1:")


def test_an_escaped_backslash_before_a_slash_is_fine() -> None:
    assert bare(tree(r'a: "x\\/y"')) == {"a": "x\\/y"}


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_depth_is_limited(opening: str) -> None:
    assert f"more than {DEEPEST} levels" in refusal(opening * 100_000)


def test_size_is_limited() -> None:
    assert "at most" in refusal("#" * (LARGEST + 1))
    assert "values" in refusal("[" + "x," * MOST_NODES + "]")
