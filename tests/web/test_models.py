"""What lists of models say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from llamaswap.config.model import Capabilities, Config, ModelConfig
from llamaswap.web.models import list_models, list_running, model_record
from support.web_daemon import NOON, WebDaemon


def record(**facts: Any) -> dict[str, Any]:
    """A model's record, stopped."""
    return model_record(ModelConfig(id="m", **facts), loaded=False, now=7)


def ids(config: Config) -> list[str]:
    """The ids that are listed, in order."""
    return [one["id"] for one in list_models(config, {}, 0)["data"]]


def test_a_plain_model_says_only_what_it_must() -> None:
    assert record() == {
        "id": "m",
        "object": "model",
        "created": 7,
        "owned_by": "llama-swap",
        "meta": {"llamaswap": {"type": "model"}},
        "status": {"value": "unloaded"},
    }


def test_names_and_descriptions_are_trimmed_and_left_out_when_empty() -> None:
    found = record(name="  A name ", description=" \n ")

    assert found["name"] == "A name"
    assert "description" not in found


@pytest.mark.parametrize(
    ("inputs", "outputs", "flags", "architecture"),
    [
        (("text",), (), {}, {"input_modalities": ["text"]}),
        ((), ("text",), {}, {"output_modalities": ["text"]}),
        (
            ("text", "image"),
            ("text",),
            {"vision"},
            {
                "input_modalities": ["text", "image"],
                "output_modalities": ["text"],
                "modality": "text+image->text",
            },
        ),
        (("audio",), ("text",), {"audio_transcriptions"}, None),
        (("text",), ("audio",), {"audio_speech"}, None),
        (("text",), ("image",), {"image_generation"}, None),
        (("image",), ("image",), {"vision", "image_to_image"}, None),
        (("audio",), ("audio",), {}, None),
        (
            ("text", "image", "audio"),
            ("text", "image", "audio"),
            {"vision", "audio_transcriptions", "audio_speech", "image_generation", "image_to_image"},
            None,
        ),
    ],
)
def test_capabilities_follow_from_what_goes_in_and_out(
    inputs: tuple[str, ...], outputs: tuple[str, ...], flags: set[str], architecture: dict[str, Any] | None
) -> None:
    found = record(capabilities=Capabilities(inputs=inputs, outputs=outputs))

    assert found.get("capabilities", {}) == dict.fromkeys(flags, True)
    if architecture is not None:
        assert found["architecture"] == architecture
    assert "supported_parameters" not in found


def test_tools_reranking_and_context_have_keys_of_their_own() -> None:
    found = record(capabilities=Capabilities(tools=True, reranker=True, context=4096))

    assert found["capabilities"] == {"function_calling": True, "reranker": True}
    assert found["supported_parameters"] == ["tools", "tool_choice"]
    assert found["context_length"] == 4096
    assert found["meta"]["n_ctx"] == 4096
    assert "architecture" not in found


def test_metadata_is_shown_but_cannot_replace_what_we_say() -> None:
    metadata = {"type": "mine", "aliases": "mine", "context_length": 1, "port": 5800}

    free = record(metadata=metadata)["meta"]["llamaswap"]
    assert free == {"type": "model", "aliases": "mine", "context_length": 1, "port": 5800}

    able = record(metadata=metadata, capabilities=Capabilities(tools=True), aliases=("n",))["meta"][
        "llamaswap"
    ]
    assert able == {"type": "model", "aliases": ["n"], "port": 5800}


def test_the_list_is_sorted_by_bytes_and_hides_what_is_unlisted() -> None:
    models = {name: ModelConfig(id=name) for name in ("b", "B", "ä", "a")}
    models["hidden"] = ModelConfig(id="hidden", unlisted=True)

    assert ids(Config(models=models)) == ["B", "a", "b", "ä"]


def test_aliases_are_listed_on_request_as_clones() -> None:
    model = ModelConfig(id="m", name="M", aliases=("nick", " "), metadata={"port": 1})
    plain = Config(models={"m": model})
    assert ids(plain) == ["m"]

    listed = list_models(Config(models={"m": model}, include_aliases_in_list=True), {"m": "starting"}, 1)[
        "data"
    ]

    assert [one["id"] for one in listed] == ["m", "nick"]
    assert listed[1]["name"] == "M"
    assert listed[1]["status"] == {"value": "loaded"}
    assert listed[1]["meta"]["llamaswap"] == {"port": 1, "type": "alias", "modelID": "m"}
    assert listed[0]["meta"]["llamaswap"]["aliases"] == ["nick", " "]


@pytest.mark.parametrize(
    ("state", "value"),
    [
        ("stopped", "unloaded"),
        ("shutdown", "unloaded"),
        ("starting", "loaded"),
        ("ready", "loaded"),
        ("stopping", "loaded"),
    ],
)
def test_a_model_counts_as_loaded_while_it_has_a_process(state: str, value: str) -> None:
    config = Config(models={"m": ModelConfig(id="m")})

    assert list_models(config, {"m": state}, 0)["data"][0]["status"]["value"] == value
    assert bool(list_running(config, {"m": state})["running"]) == (value == "loaded")


def test_what_runs_is_listed_with_all_its_keys() -> None:
    model = ModelConfig(id="m", cmd="serve\n  --x", proxy="http://h:1", ttl=5, name="N")

    assert list_running(Config(models={"m": model}), {"m": "ready"}) == {
        "running": [
            {
                "model": "m",
                "state": "ready",
                "cmd": "serve\n  --x",
                "proxy": "http://h:1",
                "ttl": 5,
                "name": "N",
                "description": "",
            }
        ]
    }


@pytest.mark.parametrize("path", ["/v1/models", "/models"])
def test_both_paths_answer_and_echo_the_origin(path: str) -> None:
    daemon = WebDaemon()

    asked = daemon.get(path, Origin="https://x.example")

    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["access-control-allow-origin"] == "https://x.example"
    assert [one["id"] for one in asked.json["data"]] == ["a", "b"]
    assert asked.json["data"][0]["created"] == int(NOON)
    assert "access-control-allow-origin" not in daemon.get(path).headers


def test_running_follows_the_processes() -> None:
    daemon = WebDaemon()
    assert daemon.get("/running").body == b'{"running":[]}\n'

    daemon.chat("b")
    assert [(one["model"], one["state"]) for one in daemon.get("/running").json["running"]] == [
        ("b", "starting")
    ]
    daemon.ready()
    assert daemon.get("/running").json["running"][0]["state"] == "ready"
    assert json.loads(daemon.get("/v1/models").body)["data"][1]["status"] == {"value": "loaded"}


EVERYTHING = """
    routing: {scheduler: {use: serial}}
    groups: {all: {swap: false, members: [a, hidden]}}
    selectors:
      any:
        {strategy: spillover, targets: [a, hidden], settings: {spillover: 2}, name: " Any ", metadata: {x: 1}}
      first: {strategy: pin, targets: [hidden, a]}
      secret: {strategy: warm, targets: [a], unlisted: true}
    profiles: {work: {pins: {daily: a, nick: hidden, gone: null, far: a}}}
    models:
      a: {cmd: serve a, proxy: "http://127.0.0.1:9001", aliases: [nick]}
      hidden: {cmd: serve hidden, proxy: "http://127.0.0.1:9002", unlisted: true}
    peers:
      box: {proxy: "http://127.0.0.2:80", models: [far, both]}
      other: {proxy: "http://127.0.0.3:80", models: [both]}
"""


def listed(daemon: WebDaemon) -> dict[str, Any]:
    """The records of the list, by id."""
    return {one["id"]: one for one in daemon.get("/v1/models").json["data"]}


def test_peers_and_selectors_are_listed_under_the_names_that_work() -> None:
    records = listed(WebDaemon(EVERYTHING))

    assert list(records) == ["a", "any", "box/both", "box/far", "first", "other/both"]
    assert records["box/far"] == {
        "id": "box/far",
        "object": "model",
        "created": int(NOON),
        "owned_by": "llama-swap",
        "name": "box: far",
        "meta": {"llamaswap": {"type": "peer", "peerID": "box"}},
        "status": {"value": "unloaded"},
    }
    assert records["any"]["name"] == "Any"
    assert records["any"]["meta"] == {
        "llamaswap": {
            "x": 1,
            "type": "selector",
            "strategy": "spillover",
            "targets": ["a", "hidden"],
            "spillover": 2,
        }
    }
    assert "spillover" not in records["first"]["meta"]["llamaswap"]


def test_a_selector_counts_as_loaded_with_a_target_that_is_or_comes_up() -> None:
    daemon = WebDaemon(EVERYTHING)
    assert listed(daemon)["any"]["status"] == {"value": "unloaded"}

    daemon.chat("a")

    assert listed(daemon)["any"]["status"] == {"value": "loaded"}
    assert listed(daemon)["first"]["status"] == {"value": "unloaded"}


def test_pins_are_listed_while_their_profile_is_on_and_only_where_they_shadow_nothing() -> None:
    daemon = WebDaemon(EVERYTHING)
    assert "daily" not in listed(daemon)

    daemon.request("PUT", "/api/profiles/active", body=b'{"name":"work"}')

    records = listed(daemon)
    assert records.keys() - {"a", "any", "box/both", "box/far", "first", "other/both"} == {"daily"}
    assert records["daily"]["meta"] == {"llamaswap": {"type": "profile"}}
    assert records["daily"]["status"] == {"value": "unloaded"}
