"""Request filters."""

from __future__ import annotations

import pytest

from support.config_checks import loaded, model_of, rejected


def test_the_strip_list_is_cleaned_and_never_holds_model() -> None:
    assert model_of("filters: {stripParams: 'model, z, a, a, , b'}").filters.strip == ("a", "b", "z")


def test_the_legacy_key_counts_for_models_where_the_new_one_is_empty() -> None:
    assert model_of("filters: {strip_params: 'b'}").filters.strip == ("b",)
    assert model_of("filters: {stripParams: 'a', strip_params: 'b'}").filters.strip == ("a",)
    peer = loaded("peers: {p: {proxy: 'http://h', models: [q], filters: {strip_params: b}}}").peers["p"]
    assert peer.filters.strip == ()


def test_set_values_keep_their_types_and_model_is_left_out() -> None:
    filters = model_of("filters: {setParams: {model: x, n: 1, f: 0.5, d: 2024-01-02, l: [~]}}").filters
    assert dict(filters.set) == {"n": 1, "f": 0.5, "d": "2024-01-02T00:00:00Z", "l": [None]}


def test_values_by_id_may_be_null_and_make_aliases() -> None:
    model = model_of("filters: {setParamsByID: {m: {a: 1}, 'm:x': ~}}")
    assert {name: dict(chosen) for name, chosen in model.filters.set_by_id.items()} == {
        "m": {"a": 1},
        "m:x": {},
    }
    assert model.aliases == ("m:x",)


@pytest.mark.parametrize(
    "block",
    ["{stripParams: [a]}", "{setParams: [a]}", "{setParamsByID: {x: [1]}}", "{setParamsByID: {x: 1}}", "[a]"],
)
def test_other_shapes_are_refused(block: str) -> None:
    assert len(rejected(f"models: {{m: {{cmd: s, proxy: 'http://h', filters: {block}}}}}")) == 1
