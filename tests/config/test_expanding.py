"""Aliases and merge keys."""

from __future__ import annotations

import pytest

from llamaswap.config.document import NotYaml
from llamaswap.config.expanding import expand
from llamaswap.config.nodes import Mapping
from support.config_nodes import bare, tree


def expanded(text: str) -> object:
    return bare(expand(tree(text)))


def test_own_keys_win_over_merged_ones_and_earlier_sources_over_later() -> None:
    text = "x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz: {<<: [*x, *y], a: 0}"
    assert expanded(text)["z"] == {"a": 0, "b": 1, "c": 2}  # type: ignore[index]  # a mapping, as the text says


def test_merging_is_shallow_and_works_over_several_steps() -> None:
    text = "x: &x {m: {p: 1}}\ny: &y {<<: *x}\nz: {<<: *y, '<<x': 1}"
    assert expanded(text)["z"] == {"m": {"p": 1}, "<<x": 1}  # type: ignore[index]  # a mapping, as the text says


def test_a_key_that_is_no_text_makes_its_mapping_opaque_through_merges_too() -> None:
    root = expand(tree("x: &x {7: a}\ny: {<<: *x, b: 1}\nz: {b: 1}\nd: {2024-01-02: 1}"))
    assert isinstance(root, Mapping)
    assert [node.opaque for _, node in root.entries if isinstance(node, Mapping)] == [True, True, False, True]


def test_a_merge_key_takes_mappings_only() -> None:
    with pytest.raises(NotYaml, match="f:1:9: YAML: << takes a mapping"):
        expand(tree("a: {<<: 5}"))


def test_an_alias_bomb_ends_at_a_limit() -> None:
    levels = "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    with pytest.raises(NotYaml, match="once its aliases are expanded"):
        expand(tree("a0: &a0 x\n" + levels))


def test_depth_counts_through_aliases() -> None:
    chain = "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 200))
    with pytest.raises(NotYaml, match="levels deep"):
        expand(tree("a0: &a0 x\n" + chain))
