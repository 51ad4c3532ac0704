"""The demonstration: its configuration, a real llama-server, a real model, and curl."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.real_daemon import Daemon, started
from support.real_daemon_demo import CHAT, EMBED, WRITER, demo_config, demo_environ
from support.real_daemon_talk import Wire, ask, chat_body, json_fields, request_bytes, until

pytestmark = pytest.mark.integration

BODY = b'{"model":"qwen3","messages":[{"role":"user","content":"hi"}]}'


def as_printed(daemon: Daemon) -> Any:
    """Send the request of the documentation, with curl where there is one."""
    url = f"http://localhost:{daemon.port}/v1/chat/completions"
    fields = {"Content-Type": "application/json", "X-LlamaSwap-Priority": "interactive"}
    if shutil.which("curl") is None:
        answer = ask(daemon.port, "POST", "/v1/chat/completions", BODY, fields)
        assert answer.status == 200
        return answer.json
    options = [word for name, value in fields.items() for word in ("-H", f"{name}: {value}")]
    words = ["curl", "--silent", "--fail", "--max-time", "60", url, *options, "-d", BODY.decode()]
    return json.loads(subprocess.run(words, capture_output=True, check=True, timeout=70).stdout)


def test_the_request_of_the_documentation_is_answered_with_text(tmp_path: Path) -> None:
    with started(tmp_path, demo_config(), environ=demo_environ()) as daemon:
        told = as_printed(daemon)

        assert told["model"] == CHAT
        (choice,) = told["choices"]
        assert len(choice["message"]["content"]) > 0
        (row,) = daemon.rows(1)
        assert row["resp_status_code"] == 200
        assert row["tokens"]["output_tokens"] > 0
        assert row["metadata"] | {"serial_load_ms": "", "serial_queue_wait_ms": ""} == {
            "serial_priority": "100",
            "serial_band": "interactive",
            "serial_score": "100",
            "serial_queue_wait_ms": "",
            "serial_load_ms": "",
        }
        assert int(row["metadata"]["serial_load_ms"]) > 0


def test_talkers_take_turns_and_the_embedder_stays(tmp_path: Path) -> None:
    with started(tmp_path, demo_config(), environ=demo_environ()) as daemon:
        words = json.dumps({"content": "hello"}).encode()
        assert ask(daemon.port, "POST", "/upstream/embed/tokenize", words, json_fields()).json["tokens"]
        assert daemon.chat("chat", max_tokens=4).status == 200
        assert daemon.running() == {CHAT: "ready", EMBED: "ready"}
        assert daemon.chat("writer", max_tokens=4).status == 200
        assert daemon.running() == {WRITER: "ready", EMBED: "ready"}


def test_a_client_that_leaves_stops_the_generation(tmp_path: Path) -> None:
    with started(tmp_path, demo_config(), environ=demo_environ()) as daemon:
        assert daemon.chat("chat", max_tokens=1).status == 200
        with Wire(daemon.port) as wire:
            body = chat_body("chat", stream=True, max_tokens=3000, ignore_eos=True)
            wire.send(request_bytes("POST", "/v1/chat/completions", body, json_fields()))
            wire.read_until(b'"content"')
            wire.abort()

        def busy() -> bool:
            return any(slot["is_processing"] for slot in daemon.get(f"/upstream/{CHAT}/slots").json)

        until(lambda: not busy(), "the end of the generation", 5.0)
        _, row = daemon.rows(2)
        assert row["error_msg"] == "the client left in the middle of the response"
        assert row["duration_ms"] < 5000
