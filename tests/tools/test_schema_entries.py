"""The defaults that editors show are the ones that the loader uses."""

from __future__ import annotations

from llamaswap.config.load import load_text
from llamaswap.tools import schema_entries
from llamaswap.tools.dump import effective

MODEL = schema_entries.models()["additionalProperties"]["properties"]
PEER = schema_entries.peers()["additionalProperties"]["properties"]

CONFIG = """
models: {m: {cmd: "s ${PORT}"}}
peers: {p: {proxy: "http://p", models: [x]}}
"""


def test_a_model_has_the_defaults_that_are_shown() -> None:
    ours = {"protected": False}  # what llama-swap does not know is shown where it is set
    real = {**ours, **effective(load_text(CONFIG))["models"]["m"]}
    inherited = {"ttl", "unloadTimeout", "proxy"}
    shown = {key: value["default"] for key, value in MODEL.items() if "default" in value}

    assert {key: real[key] for key in shown.keys() - inherited} == {
        key: shown[key] for key in shown.keys() - inherited
    }
    assert shown["proxy"].replace("${PORT}", "5800") == real["proxy"]


def test_timeouts_have_the_defaults_of_their_owner() -> None:
    real = effective(load_text(CONFIG))

    for owner, settings in ((MODEL, real["models"]["m"]), (PEER, real["peers"]["p"])):
        shown = {key: value["default"] for key, value in owner["timeouts"]["properties"].items()}
        assert shown == settings["timeouts"]


def test_only_models_know_the_old_spelling_of_strip_params() -> None:
    assert "strip_params" in MODEL["filters"]["properties"]
    assert "strip_params" not in PEER["filters"]["properties"]
