"""Which model a name or a path means."""

from __future__ import annotations

import time

import pytest

from llamaswap.calls.catalog import Catalog
from llamaswap.config.model import Config, ModelConfig

IDS = ("a", "a/b", "author", "author/m2", "simple", "sp ace")
CATALOG = Catalog(
    Config(models={name: ModelConfig(id=name) for name in IDS}, names={"nick": "a", "author/nick": "a/b"})
)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("a", "a"),
        ("a/b", "a/b"),
        ("nick", "a"),
        ("author/nick", "a/b"),
        ("A", None),
        (" a", None),
        ("", None),
        ("ghost", None),
        ("a/", None),
    ],
)
def test_a_name_is_an_id_or_an_alias_exactly(name: str, model: str | None) -> None:
    found = CATALOG.find(name)

    assert (found and found.id) == model


def test_an_id_goes_before_an_alias_of_the_same_name() -> None:
    models = {name: ModelConfig(id=name) for name in ("a", "b")}
    found = Catalog(Config(models=models, names={"a": "b"})).find("a")

    assert found is not None
    assert found.id == "a"


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("a", "a"),
        ("a/", "a"),
        ("a/b/c", "a/b"),
        ("a/c/b", "a"),
        ("author/m2/v1/chat", "author/m2"),
        ("author/v1/chat", "author"),
        ("nick/x", "a"),
        ("author/nick/x", "a/b"),
        ("sp ace/x", "sp ace"),
    ],
)
def test_a_path_means_the_longest_name_that_it_begins_with(path: str, model: str) -> None:
    found = CATALOG.find_in_path(path)

    assert found is not None
    assert found.id == model


@pytest.mark.parametrize("path", ["", "/", "missing/v1", "/a", "ab", "x/a"])
def test_a_path_that_begins_with_no_name_means_nothing(path: str) -> None:
    assert CATALOG.find_in_path(path) is None


def test_a_path_of_many_segments_is_looked_up_in_no_time() -> None:
    began = time.process_time()

    assert CATALOG.find_in_path("x/" * 30_000) is None

    assert time.process_time() - began < 0.2


def test_all_models_are_listed_by_id() -> None:
    assert list(CATALOG.models) == list(IDS)
