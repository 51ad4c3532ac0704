"""Where global and model macros are seen."""

from __future__ import annotations

import pytest

from support.config_checks import loaded, rejected


def test_ports_are_counted_in_byte_order_of_the_ids_from_a_port_that_may_be_a_macro() -> None:
    config = loaded(
        """
        macros: {S: 7000}
        startPort: "${S}"
        models:
          a9: {cmd: "s ${PORT}"}
          a10: {cmd: "s ${PORT}"}
          B: {cmd: "s ${PORT}"}
          c: {cmd: s, proxy: "http://h"}
          z: {cmd: "s ${PORT}"}
        """
    )
    argvs = {name: model.argv[-1] for name, model in config.models.items() if name != "c"}
    assert argvs == {"B": "7000", "a10": "7001", "a9": "7002", "z": "7003"}


def test_a_model_macro_replaces_its_namesake_where_that_stands() -> None:
    config = loaded(
        """
        macros: {T: g, U: "u-${T}"}
        models:
          m: {cmd: "x ${U}", proxy: "http://h", macros: {T: m}}
          n: {cmd: "x ${U}", proxy: "http://h"}
        """
    )
    assert config.models["m"].argv == ("x", "u-m")
    assert config.models["n"].argv == ("x", "u-g")


@pytest.mark.parametrize(
    "text",
    [
        "macros: {G: '-${L}'}\nmodels: {m: {cmd: 'x ${G}', proxy: 'http://h', macros: {L: v}}}",
        "macros: {T: g, U: '${T}'}\nmodels: {m: {cmd: '${U}', proxy: 'http://h', macros: {L: 1, T: '${L}'}}}",
        "models: {m: {cmd: x, proxy: 'http://h', macros: {L: 1}}, n: {cmd: '${L}', proxy: 'http://h'}}",
        "logTimeFormat: '${MODEL_ID}'",
    ],
)
def test_a_scope_ends_where_it_ends(text: str) -> None:
    assert len(rejected(text)) == 1


@pytest.mark.parametrize("key", ["42", "true", "1.5", "2024-01-02", "~"])
def test_a_model_id_that_is_no_text_is_refused_instead_of_losing_all_models(key: str) -> None:
    text = f'models: {{{key}: {{cmd: a, proxy: "http://h"}}}}'
    assert rejected(text) == [f"1:10: models: a model id must be text; put quotes around {key}"]
