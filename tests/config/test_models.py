"""One model's settings."""

from __future__ import annotations

import pytest

from llamaswap.config.model import Capabilities, ModelConfig, Timeouts
from support.config_checks import loaded, model_of, rejected, warnings_of


def test_a_model_without_settings_gets_the_defaults() -> None:
    assert loaded("models: {m: {cmd: 's ${PORT}'}}").models["m"] == ModelConfig(
        id="m", cmd="s 5800", argv=("s", "5800"), proxy="http://localhost:5800"
    )


def test_every_setting_is_read() -> None:
    model = loaded(
        """
        models:
          org/m:q4:
            cmd: srv "two words"
            cmdStop: stop ${PID}
            proxy: http://h:1/base
            checkEndpoint: /ready
            aliases: [z, 007, yes]
            env: [A=1, 2]
            ttl: 60.9
            unloadTimeout: 7
            unlisted: "On"
            useModelName: real
            name: 2.10
            description: text
            concurrencyLimit: 0x10
            protected: yes
            sendLoadingState: true
            metadata: {a: [1, {b: ~}]}
            timeouts: {connect: 5}
            compat: {ignoreWebsockets: true, drainOnDisconnect: yes}
            capabilities: {in: [text, image], out: [text], tools: true, context: 8192}
        """
    ).models["org/m:q4"]
    assert model == ModelConfig(
        id="org/m:q4",
        cmd='srv "two words"',
        argv=("srv", "two words"),
        cmd_stop="stop ${PID}",
        proxy="http://h:1/base",
        check_endpoint="/ready",
        aliases=("7", "yes", "z"),
        env=("A=1", "2"),
        ttl=60,
        unload_timeout=7,
        unlisted=True,
        use_model_name="real",
        name="2.1",
        description="text",
        concurrency_limit=16,
        protected=True,
        send_loading_state=True,
        metadata={"a": [1, {"b": None}]},
        timeouts=Timeouts(connect=5),
        ignore_websockets=True,
        drain_on_disconnect=True,
        capabilities=Capabilities(inputs=("text", "image"), outputs=("text",), tools=True, context=8192),
    )


def test_global_settings_are_inherited_and_can_be_overridden() -> None:
    shared = ("globalTTL: 60", "unloadTimeout: 33", "sendLoadingState: true", "healthCheckTimeout: 40")
    model = model_of("", *shared)
    assert (model.ttl, model.unload_timeout, model.send_loading_state) == (60, 33, True)
    assert model.health_check_timeout == 40
    own = model_of("ttl: 0, unloadTimeout: 5, sendLoadingState: off, healthCheckTimeout: 99", *shared)
    assert (own.ttl, own.unload_timeout, own.send_loading_state) == (0, 5, False)
    assert own.health_check_timeout == 40


def test_a_null_model_has_no_defaults() -> None:
    model = loaded("models:\n  x:\n").models["x"]
    assert (model.proxy, model.check_endpoint, model.timeouts.connect) == ("", "", 0)


def test_comfyui_gets_more_concurrency_and_no_websockets() -> None:
    model = loaded("models: {comfyui_auto: {cmd: s, proxy: 'http://h', concurrencyLimit: 3}}").models[
        "comfyui_auto"
    ]
    assert (model.concurrency_limit, model.ignore_websockets) == (50, True)


@pytest.mark.parametrize("cmd", ["", "cmd: '', ", "cmd: '# only a comment', "])
def test_a_model_that_cannot_be_started_loads_with_a_warning(cmd: str) -> None:
    warnings = warnings_of(f"models: {{m: {{{cmd}proxy: 'http://h'}}}}")
    assert [warning.partition(": ")[2] for warning in warnings] == [
        "models.m.cmd: there is no command, so this model can't be started"
    ]


def test_an_unknown_key_is_warned_about_with_a_guess() -> None:
    assert warnings_of("models: {m: {cmd: s, proxy: 'http://h', unloadTimout: 5}}") == [
        "1:41: models.m.unloadTimout: unknown key; did you mean 'unloadTimeout'?"
    ]


def test_a_key_in_the_wrong_case_is_an_unknown_one() -> None:
    assert "did you mean 'ttl'" in warnings_of("models: {m: {cmd: s, proxy: 'http://h', TTL: 5}}")[0]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ("ttl: soon", "ttl: expected seconds, got 'soon'"),
        ("ttl: '60'", "ttl: expected seconds, got '60'"),
        ("ttl: -2", "ttl: expected seconds, 0 (never) or -1 (globalTTL), got -2"),
        ("unloadTimeout: -1", "unloadTimeout: expected seconds from 1, or 0 for the global value, got -1"),
        ("unlisted: 1", "unlisted: expected true or false, got 1"),
        ("env: A=1", "env: expected a list, got a single value"),
        ("env: [[a]]", "env[0]: expected text, got a list"),
        ("timeouts: {connect: 5s}", "timeouts.connect: expected seconds, got '5s'"),
        ("protected: maybe", "protected: expected true or false, got 'maybe'"),
        (
            "compat: {drainOnDisconnect: maybe}",
            "compat.drainOnDisconnect: expected true or false, got 'maybe'",
        ),
        (
            "capabilities: {in: [video]}",
            "capabilities.in[0]: expected one of text, audio, image, got 'video'",
        ),
        ("capabilities: {context: -1}", "capabilities.context: expected tokens from 0, got -1"),
        ("metadata: 5", "metadata: expected a mapping, got 5"),
    ],
)
def test_a_bad_setting_is_refused(settings: str, complaint: str) -> None:
    have = rejected(f"models: {{m: {{cmd: s, proxy: 'http://h', {settings}}}}}")
    assert [line.partition(": ")[2] for line in have] == [f"models.m.{complaint}"]


def test_a_proxy_that_is_no_url_is_refused() -> None:
    assert rejected("models: {m: {cmd: s, proxy: '127.0.0.1:80'}}") == [
        "1:29: models.m.proxy: expected a URL, but '127.0.0.1:80' lacks its scheme, as in http://"
    ]
