"""Nothing that comes over the wire becomes part of a command, and no shell ever reads one."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import llamaswap
from support.security_hostile import FORGED, texts, values
from support.web_daemon import WebDaemon

PACKAGE = Path(llamaswap.__file__).parent

CONFIG = """
    macros: {where: /srv/models}
    models:
      a:
        cmd: serve --port ${PORT} --model "${where}/${MODEL_ID}.gguf" ; echo $HOME | cat
        cmdStop: stop ${PID} $(date)
        env: ["A=$(id)"]
        aliases: [alpha]
      b: {cmd: other b, proxy: "http://127.0.0.1:9002"}
"""
WORDS = ("serve", "--port", "5800", "--model", "/srv/models/a.gguf", ";", "echo", "$HOME", "|", "cat")


@given(st.one_of(texts, st.sampled_from(FORGED)), values)
@settings(max_examples=40, deadline=None)
def test_a_child_is_started_and_stopped_with_the_configured_words_whatever_is_asked(
    text: str, value: str
) -> None:
    daemon = WebDaemon(CONFIG)
    fields = {
        "User-Agent": value,
        "X-Model": value,
        "PORT": value,
        "PID": value,
        "X-LlamaSwap-Priority": value,
    }
    body = json.dumps({"model": "alpha", "cmd": text, "args": [text], "${PORT}": text}).encode()

    daemon.request("POST", "/v1/chat/completions?PORT=1&cmd=x", headers=fields, body=body)
    first = daemon.child
    daemon.ready()
    daemon.upstream().answers(text.encode())
    daemon.post("/v1/chat/completions", {"model": text})
    daemon.chat("b")

    assert first.order.argv == WORDS
    assert first.order.env == ("A=$(id)",)
    stop = daemon.children.started[1]
    assert stop.order.argv == ("stop", str(first.pid), "$(date)")
    assert stop.order.env == ("A=$(id)",)
    assert len(daemon.children.started) == 2, "an unknown name starts nothing"


def test_a_macro_in_a_request_is_text() -> None:
    daemon = WebDaemon(CONFIG)

    asked = daemon.post("/v1/chat/completions", {"model": "b", "x": "${PORT} ${where} ${env.HOME} ${PID}"})
    daemon.ready()
    upstream = daemon.upstream()

    assert json.loads(upstream.body)["x"] == "${PORT} ${where} ${env.HOME} ${PID}"
    upstream.answers()
    assert asked.status == 200


FORBIDDEN_MODULES = {"subprocess", "pty", "pickle", "marshal", "shelve", "commands", "multiprocessing"}
FORBIDDEN_CALLS = {
    *("os.system", "os.popen", "os.execv", "os.execve", "os.fork", "yaml.load", "yaml.unsafe_load"),
    *("yaml.full_load", "eval", "exec", "compile", "__import__", "tempfile.mktemp"),
}


OF_A_PERSON = {"simulation/tuning.py": "multiprocessing"}
"""Modules of commands that a person runs, and what they may use; the daemon never loads them."""


def test_no_module_has_a_way_to_a_shell_or_to_code_from_outside() -> None:
    guilty: list[str] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                guilty += [f"{path}: {alias.name}" for alias in node.names if alias.name in FORBIDDEN_MODULES]
            elif isinstance(node, ast.ImportFrom) and node.module in FORBIDDEN_MODULES:
                guilty.append(f"{path}: {node.module}")
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in FORBIDDEN_CALLS:
                guilty.append(f"{path}: {ast.unparse(node.func)}")
            elif isinstance(node, ast.keyword) and node.arg == "shell":
                guilty.append(f"{path}: shell=")

    allowed = {f"{PACKAGE / name}: {module}" for name, module in OF_A_PERSON.items()}
    assert set(guilty) <= allowed


def test_the_daemon_does_not_load_what_only_a_person_runs() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, llamaswap.cli; print(*sys.modules, sep='\\n')"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()

    assert not {"llamaswap.simulation.tuning", "multiprocessing", "matplotlib", "tqdm"} & set(loaded)
