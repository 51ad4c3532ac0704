"""What a reload would do, told without doing it."""

from __future__ import annotations

import io
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from typing_extensions import override

from llamaswap.config.load import load_text
from llamaswap.config.model import Config
from llamaswap.tools.against import Change, NotAsked, Running, changes, ports_of, understand
from llamaswap.tools.commands import run
from llamaswap.web.models import list_launches

BEFORE = """
models:
  a: {cmd: "serve a --port ${PORT}"}
  b: {cmd: "serve b --port ${PORT}"}
  c: {cmd: "serve c --port ${PORT}"}
  d: {cmd: "serve d --port ${PORT}"}
"""
AFTER = """
models:
  A-first: {cmd: "serve first --port ${PORT}"}
  a: {cmd: "serve a --port ${PORT}", ttl: 60}
  b: {cmd: "serve b --port ${PORT} --new"}
  d: {cmd: "serve d --port ${PORT} --new"}
"""
STATES = {"a": "ready", "b": "ready", "c": "ready", "d": "stopped"}


def shown(config: Config) -> str:
    return json.dumps(list_launches(config, STATES))


def running() -> dict[str, Running]:
    return dict(understand(json.loads(shown(load_text(BEFORE)))))


def test_each_model_is_told_what_becomes_of_it() -> None:
    after = load_text(AFTER, ports=ports_of(running()))

    assert list(changes(running(), after)) == [
        Change("A-first", "comes"),
        Change("a", "stays", "keeps running"),
        Change("b", "starts anew", "cmd changed; once its requests have ended"),
        Change("c", "goes", "stops when its last request has ended"),
        Change("d", "changes", "cmd changed"),
    ]


@pytest.mark.parametrize("answer", [None, [], {}, {"models": []}, {"models": {"a": {}}}])
def test_an_answer_that_is_none_is_told_from_one(answer: object) -> None:
    with pytest.raises(NotAsked):
        understand(answer)


class _Daemon(BaseHTTPRequestHandler):
    """Answers like a daemon with an API key."""

    def do_GET(self) -> None:
        """Show the launches to who has the key."""
        allowed = self.headers["Authorization"] == "Bearer k" and self.path == "/api/launches"
        body = shown(load_text(BEFORE)).encode() if allowed else b"no"
        self.send_response(200 if allowed else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Daemon)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join(5)


def ask(url: str, folder: Path, key: str = "k") -> tuple[int, str, str]:
    file = folder / "config.yaml"
    file.write_text(AFTER)
    out, err = io.StringIO(), io.StringIO()
    code = run(["validate", "--against", url, str(file)], out, err, {"LLAMASWAP_API_KEY": key})
    return code, out.getvalue(), err.getvalue()


def test_the_command_asks_the_daemon_and_says_a_line_for_each_model(url: str, tmp_path: Path) -> None:
    code, out, err = ask(url, tmp_path)

    assert (code, err) == (0, "")
    assert out.splitlines()[:2] == ["A-first: comes", "a: stays (keeps running)"]


def test_a_daemon_that_refuses_is_named_in_one_line(url: str, tmp_path: Path) -> None:
    code, out, err = ask(url, tmp_path, key="wrong")

    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "401" in err


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1/",
        "127.0.0.1:1",
        "http://127.0.0.1:1",
        "http://127.0.0.1:port",
        "http://a b/",
        "http://[::1/",
    ],
)
def test_what_cannot_be_asked_is_named_in_one_line(url: str, tmp_path: Path) -> None:
    code, _, err = ask(url, tmp_path)

    assert code == 1
    assert err.startswith((url, repr(url)))
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "said", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"]
)
def test_who_speaks_something_else_or_not_to_the_end_is_named_in_one_line(
    said: bytes, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(said)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        code, out, err = ask(url, tmp_path)
        thread.join(5)

    assert (code, out) == (1, "")
    assert err.startswith(url)
    assert err.count("\n") == 1


def test_a_proxy_is_not_asked_for_this_machine(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)

    code, _, err = ask(url, tmp_path)

    assert (code, err) == (0, "")
