"""Ports, ids, comments and the default proxy of one model."""

from __future__ import annotations

from support.config_checks import loaded, model_of, rejected, warnings_of


def test_a_port_replaces_its_placeholder_throughout_the_model() -> None:
    config = loaded(
        """
        models:
          m:
            cmd: s ${PORT}
            metadata: {p: "${PORT}", u: "h:${PORT}", k: {7: "${PORT}"}}
        """
    )
    model = config.models["m"]
    assert model.proxy == "http://localhost:5800"
    assert model.metadata == {"p": 5800, "u": "h:5800", "k": {"7": "${PORT}"}}


def test_without_a_port_in_cmd_the_proxy_must_be_given() -> None:
    assert rejected("models: {m: {cmd: s}}") == ["1:10: models.m.proxy: set proxy, or use ${PORT} in cmd"]


def test_a_port_that_only_a_comment_asks_for_is_not_given() -> None:
    assert len(rejected("models:\n  m:\n    cmd: |\n      srv\n      # ${PORT}\n")) == 1


def test_comments_leave_a_command_before_macros_are_looked_for() -> None:
    model = loaded("models:\n  m:\n    cmd: |\n      # ${nope}\n      s\n    proxy: http://h\n").models["m"]
    assert model.cmd == "s\n"


def test_the_model_id_is_known_inside_the_model() -> None:
    assert model_of("name: 'I am ${MODEL_ID}'").name == "I am m"


def test_the_process_id_survives_in_cmd_stop_only() -> None:
    assert model_of("cmdStop: 'kill ${PID}'").cmd_stop == "kill ${PID}"
    assert rejected("models: {m: {cmd: 's ${PID}', proxy: 'http://h'}}") == [
        "1:19: models.m.cmd: ${PID} is only known to cmdStop"
    ]


def test_keys_of_set_params_by_id_are_expanded_and_must_stay_different() -> None:
    keys = model_of("filters: {setParamsByID: {'${MODEL_ID}:hi': {a: 1}}}")
    assert keys.aliases == ("m:hi",)
    filters = "filters: {setParamsByID: {'${A}': {}, z: {}}}"
    text = f"macros: {{A: z}}\nmodels: {{m: {{cmd: s, proxy: 'http://h', {filters}}}}}"
    assert [line.partition(": ")[2] for line in rejected(text)] == [
        "models.m.filters.setParamsByID: two keys become 'z'"
    ]


def test_a_merged_anchor_brings_its_macros_unless_the_model_has_its_own() -> None:
    anchor = 'b: &b {cmd: "x ${L}", proxy: "http://h", macros: {L: 1}}\n'
    assert loaded(anchor + "models: {m: {<<: *b}}").models["m"].argv == ("x", "1")
    assert rejected(anchor + "models: {m: {<<: *b, macros: {K: 2}}}")


def test_a_model_with_a_key_that_is_no_text_is_not_expanded_and_says_so() -> None:
    text = "models: {m: {cmd: 's ${PORT}', proxy: 'http://h', 7: x}}"
    assert loaded(text).models["m"].argv == ("s", "${PORT}")
    assert any("macros are not expanded" in warning for warning in warnings_of(text))


def test_an_unused_macro_with_an_unknown_reference_is_harmless() -> None:
    assert model_of("macros: {U: '${nope}'}").argv == ("s",)
