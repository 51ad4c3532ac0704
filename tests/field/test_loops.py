"""Cases from the field: models without a command, and those that lead back to the daemon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.field import Field, Model, stub
from support.field_ports import free_ports
from support.real_daemon import Daemon, started
from support.real_daemon_talk import Wire, chat_body, json_fields, request_bytes, until

pytestmark = pytest.mark.integration

BACK = "http://127.0.0.1:{port}"


def test_case_030_a_model_without_a_command_is_told_of_at_the_start_and_refused_at_once(
    tmp_path: Path,
) -> None:
    """llama-swap loads such a configuration and fails when the model is asked for; we warn as well."""
    url = "http://127.0.0.1:9"
    models: dict[str, Model | str] = {
        "empty": stub(cmd="", proxy=url),
        "blank": stub(cmd=" \n", proxy=url),
        "comment": stub(cmd="# to be done\n  # later", proxy=url),
        "null": Model(keys={"cmd": "", "proxy": url}),
        "B": "",
    }
    with Field(tmp_path, models) as field:
        for name in models:
            if name == "B":
                continue
            (warning,) = field.log(f"models.{name}.cmd")
            assert "there is no command" in warning
            call = field.chat(name)
            assert call.status == 500
            assert call.took < 2.0
            assert "it is empty" in call.json["error"]["message"]
        assert field.running() == {}
        assert field.chat("B").wrong() == ""
        field.until(lambda: len(field.log("process.not_started model=")) == 4, "a line for each")


def looping(**more: Any) -> tuple[int, dict[str, Any]]:
    """A port for the daemon, and a configuration that leads back there; JSON is YAML."""
    port = free_ports(1)
    loop = {"cmd": "sleep 1000", "proxy": BACK.format(port=port)}
    return port, {"models": {"A": loop}, "routing": {"scheduler": {"use": "serial"}}, **more}


def ask_once(daemon: Daemon, model: str, deadline: float = 3.0) -> bytes:
    """The answer to a request, as far as it comes in time."""
    with Wire(daemon.port) as wire:
        wire.send(request_bytes("POST", "/v1/chat/completions", chat_body(model), json_fields()))
        assert wire.ends_within(deadline, b"\r\n\r\n"), f"no answer within {deadline} s"
        return wire.received


def test_case_030_a_model_at_the_daemons_own_address_is_told_of_at_the_start_and_never_loaded(
    tmp_path: Path,
) -> None:
    port, config = looping()
    with started(tmp_path, config, port=port) as daemon:
        assert f"config.led_back path=models.A.proxy proxy={BACK.format(port=port)}" in daemon.output()

        answer = ask_once(daemon, "A")

        assert answer.startswith(b"HTTP/1.1 500 ")
        until(lambda: "is where this daemon itself listens" in daemon.output(), "the reason")
        assert daemon.children() == []
        assert daemon.running() == {}
        assert daemon.waiting() == 0


def test_case_030_a_peer_that_is_the_daemon_itself_is_refused_and_asked_once(tmp_path: Path) -> None:
    port, config = looping()
    peers = {"us": {"proxy": BACK.format(port=port), "models": ["x"]}}
    with started(tmp_path, {**config, "peers": peers}, port=port) as daemon:
        assert "config.led_back path=peers.us.proxy" in daemon.output()

        answer = ask_once(daemon, "x", deadline=1.0)

        assert answer.startswith((b"HTTP/1.1 508 ", b"HTTP/1.1 502 "))
        assert daemon.output().count("POST /v1/chat/completions") <= 2
