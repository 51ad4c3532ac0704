"""A dump is JSON with everything in it.  The recorded configurations are held against it elsewhere."""

from __future__ import annotations

import json

from llamaswap.config.load import load_text
from llamaswap.tools.dump import dump, effective, free_form, model_settings
from support.tools_configs import grouped, sets


def test_a_dump_is_json_with_one_object() -> None:
    assert json.loads(dump(grouped())) == effective(grouped())
    assert dump(grouped()).endswith("}\n")


def test_macros_and_defaults_are_applied() -> None:
    model = effective(grouped())["models"]["qwen"]

    assert model["argv"] == ["llama-server", "--port", "5801", "--alias", "my model"]
    assert model["checkEndpoint"] == "/health"


def test_only_the_router_in_use_is_shown() -> None:
    assert effective(grouped())["matrix"] is None
    assert effective(sets())["groups"] is None
    assert effective(sets())["matrix"]["sets"] == [["all", "+pair | a & c"], ["pair", "a & b"]]


def test_what_llama_swap_does_not_know_is_shown_only_when_in_use() -> None:
    serial = "routing: {scheduler: {use: serial, settings: {serial: {agingDivisor: 30}}}}"

    assert "serial" not in effective(grouped())
    assert effective(grouped(serial))["serial"] == {"agingDivisor": 30.0, "swapAffinityBonus": 10}


def test_limits_are_shown_when_one_is_not_the_default() -> None:
    assert "limits" not in effective(grouped())
    assert "limits" not in effective(load_text("limits: {requestBody: 1GiB, readers: 256}"))
    assert effective(load_text("limits: {requestBody: 64KiB, waiting: 5}"))["limits"] == {
        "connections": 0,
        "waiting": 5,
        "requestBody": 65536,
        "heldBodies": None,
        "slowClient": 8 << 20,
        "readers": 256,
    }


def test_budget_width_and_bounds_are_shown_where_they_say_something() -> None:
    ours = "swapBudgetSeconds: 5, width: {q: 4}, maxWait: {normal: 10m, batch: 0}, maxQueue: {batch: 500}"
    serial = f"routing: {{scheduler: {{use: serial, settings: {{serial: {{{ours}}}}}}}}}"

    assert effective(grouped(serial))["serial"] == {
        "agingDivisor": 60.0,
        "swapAffinityBonus": 10,
        "swapBudgetSeconds": 5.0,
        "width": {"qwen": 4},
        "maxWait": {"normal": 600.0},
        "maxQueue": {"batch": 500},
    }


def test_signs_of_life_are_shown_when_there_are_any() -> None:
    assert "keepAlive" not in effective(grouped("keepAlive: {stream: 0}"))
    assert effective(grouped("keepAlive: 15s"))["keepAlive"] == {"stream": 15.0, "json": 0.0}


def test_callers_are_shown_without_their_keys() -> None:
    caller = "name: pro, keys: [key-one, key-two], maxPriority: interactive, offset: 1"
    text = f"apiKeys: [key-one, key-two]\npriorities: {{callers: [{{{caller}}}], models: {{q: batch}}}}"
    shown = effective(grouped(text))

    assert shown["priorities"] == {
        "callers": [
            {
                "name": "pro",
                "keys": ["***", "***"],
                "defaultPriority": None,
                "maxPriority": 100,
                "offset": 1,
            }
        ],
        "models": {"qwen": -100},
    }
    assert "priorities" not in effective(grouped("priorities: {}"))


def test_a_model_that_is_read_to_its_end_says_so() -> None:
    settings = 'cmd: s, proxy: "http://h", compat: {drainOnDisconnect: true}'
    drained = load_text(f"models: {{m: {{{settings}}}}}").models["m"]

    assert model_settings(drained)["drainOnDisconnect"] is True
    assert "drainOnDisconnect" not in model_settings(grouped().models["qwen"])


def test_protected_is_shown_where_it_is_set() -> None:
    kept = load_text('models: {m: {cmd: s, proxy: "http://h", protected: true}}').models["m"]

    assert model_settings(kept)["protected"] is True
    assert "protected" not in model_settings(grouped().models["qwen"])


def test_numbers_that_json_lacks_are_wrapped() -> None:
    assert free_form({"a": [float("inf"), float("-inf"), 1.5]}) == {
        "a": [{"$float": "inf"}, {"$float": "-inf"}, 1.5]
    }
    assert free_form(float("nan")) == {"$float": "nan"}


def test_dates_and_keys_that_are_no_text_are_told_from_text() -> None:
    config = load_text(
        "models: {m: {cmd: s, proxy: 'http://h', metadata: {d: 2024-05-06, k: {7: a, b: [1]}, 8: x}}}"
    )

    shown = effective(config)["models"]["m"]["metadata"]

    assert shown == {
        "$map": [
            ["d", {"$time": "2024-05-06T00:00:00Z"}],
            ["k", {"$map": [["b", [1]], [7, "a"]]}],
            [8, "x"],
        ]
    }
    assert config.models["m"].metadata["k"] == {"7": "a", "b": [1]}
