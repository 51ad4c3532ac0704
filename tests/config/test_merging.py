"""Several files to one tree."""

from __future__ import annotations

import pytest

from llamaswap.config.merging import merge
from llamaswap.config.mistakes import Report
from support.config_checks import lines
from support.config_nodes import bare, mapping


def merged(*texts: str) -> object:
    report = Report()
    tree = merge([mapping(text) for text in texts], report)
    assert not report.mistakes
    return bare(tree)


def conflicts(*texts: str) -> list[str]:
    report = Report()
    merge([mapping(text) for text in texts], report)
    return lines(report)


def test_mappings_unite_and_lists_join() -> None:
    have = merged("ui: {a: 1}\napiKeys: [x]", "ui: {b: 2}\napiKeys: [x, y]\nz: 1")
    assert have == {"ui": {"a": 1, "b": 2}, "apiKeys": ["x", "x", "y"], "z": 1}


def test_models_of_several_files_stand_side_by_side() -> None:
    assert merged("models: {a: 1}", "models: {b: 2}", "models: {c: 3}") == {
        "models": {"a": 1, "b": 2, "c": 3}
    }


def test_a_model_in_two_files_is_refused_where_the_later_one_stands() -> None:
    assert conflicts("models: {a: 1}", "models: {a: 1}") == ["f:1:10: models.a: already defined at f:1:10"]


def test_equal_scalars_agree_by_their_text() -> None:
    assert merged("a: 0x10", "a: 0x10") == {"a": 16}
    assert conflicts("a: 16", "a: 0x10") == ["f:1:4: a: conflicts with 16 at f:1:4"]


def test_a_key_without_a_value_gives_way_but_a_written_null_does_not() -> None:
    assert merged("a:", "a: 1") == {"a": 1}
    assert merged("a: 1", "a:") == {"a": 1}
    assert conflicts("a: ~", "a: 1")


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("models:", "models: {a: 1}"),
        ("a: [1]", "a: 1"),
        ("a: {b: 1}", "a: 1"),
        ("x: &x {}\na: *x", "a: {}"),
    ],
)
def test_what_does_not_fit_together_is_refused(first: str, later: str) -> None:
    assert len(conflicts(first, later)) == 1


def test_all_conflicts_are_reported() -> None:
    assert len(conflicts("a: 1\nb: 1", "a: 2\nb: 2")) == 2
