"""The stub that ships with us, as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from bench.launching import free_ports
from support.real_daemon_processes import words_of
from support.real_daemon_talk import Answer, Wire, ask, chat_body, request_bytes, until

pytestmark = pytest.mark.integration

PATIENCE = 10.0


class Running:
    """One stub, and what it leaves."""

    def __init__(self, folder: Path, words: tuple[str, ...]) -> None:
        self.port = free_ports(1)
        self._folder = folder
        self._output = (folder / "output").open("wb")
        command = [sys.executable, "-m", "llamaswap.stub", "--port", str(self.port)]
        self.process = subprocess.Popen(
            [*command, "--record", str(folder / "record"), *words],
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def end(self) -> None:
        """End it and whatever belongs to it."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        self._output.close()

    def is_there(self) -> bool:
        """Whether somebody listens."""
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except ConnectionRefusedError:
            return False
        return True

    def ask(self, method: str, path: str, body: bytes | None = None, **fields: str) -> Answer:
        """One exchange."""
        return ask(self.port, method, path, body, fields)

    def output(self) -> str:
        """What it has written."""
        return (self._folder / "output").read_text()

    def notes(self, event: str) -> list[dict[str, Any]]:
        """What it has recorded."""
        lines = (self._folder / "record").read_text().splitlines(keepends=True)
        notes = [json.loads(line) for line in lines if line.endswith("\n")]
        return [note for note in notes if note["event"] == event]


@contextmanager
def stub(folder: Path, *words: str, listening: bool = True) -> Iterator[Running]:
    """A stub that listens."""
    running = Running(folder, words)
    try:
        if listening:
            until(running.is_there, f"a stub: {running.output()}", PATIENCE)
        yield running
    finally:
        running.end()


def test_it_says_where_it_is_and_turns_healthy_when_it_has_loaded(tmp_path: Path) -> None:
    with stub(tmp_path, "--alias", "m", "--load", "0.4") as running:
        began = time.monotonic()
        assert running.ask("GET", "/health").status == 503
        assert running.ask("POST", "/v1/chat/completions", chat_body("m")).status == 503
        until(lambda: running.ask("GET", "/health").status == 200, "the load", PATIENCE)

        assert time.monotonic() - began < 2.0
        assert f"stub: m listens on 127.0.0.1 port {running.port}, start 1\n" in running.output()
        assert running.ask("GET", "/v1/models").json["data"][0]["id"] == "m"


def test_without_packages_it_is_there_at_once(tmp_path: Path) -> None:
    program = "import sys; import llamaswap.stub.__main__; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    theirs = {name.partition(".")[0] for name in loaded.stdout.split()}
    assert not theirs & {"twisted", "yaml", "asyncio", "httptools", "msgspec", "zope"}


def test_connections_are_refused_until_it_binds(tmp_path: Path) -> None:
    with stub(tmp_path, "--bind-at", "0.5", listening=False) as running:
        until(lambda: (tmp_path / "record").exists() and running.notes("started"), "a start", PATIENCE)
        assert not running.is_there()
        until(running.is_there, "its port", PATIENCE)


@pytest.mark.parametrize(
    ("words", "code"), [((), 1), (("--code", "7"), 7), (("--sig", "6"), -6), (("--sig", "15"), -15)]
)
def test_it_dies_at_its_hour_in_the_way_asked_for(words: tuple[str, ...], code: int, tmp_path: Path) -> None:
    with stub(tmp_path, "--die-at", "0.3", "--load", "60", *words, listening=False) as running:
        assert running.process.wait(PATIENCE) == code
        assert running.notes("died")[0]["at"] - running.notes("started")[0]["at"] < 1.0
        assert "fatal error, as asked for" in running.output()


def test_it_dies_on_a_token(tmp_path: Path) -> None:
    with stub(tmp_path, "--die-on", "2", "--sig", "11") as running, Wire(running.port) as wire:
        wire.send(request_bytes("POST", "/v1/chat/completions", chat_body("m", stream=True)))
        with suppress(ConnectionResetError):
            wire.read_to_end()

        assert running.process.wait(PATIENCE) == -signal.SIGSEGV
        assert wire.received.count("wörd".encode()) == 2


def test_the_second_start_takes_the_second_value(tmp_path: Path) -> None:
    words = ("--die-at", "0,-", "--code", "9", "--counter", str(tmp_path / "starts"))
    with stub(tmp_path, *words, listening=False) as running:
        assert running.process.wait(PATIENCE) == 9
    with stub(tmp_path, *words) as running:
        assert running.ask("GET", "/health").status == 200
        assert [note["start"] for note in running.notes("started")] == [1, 2]


def test_sigterm_ends_it_at_once(tmp_path: Path) -> None:
    with stub(tmp_path) as running:
        running.process.terminate()

        assert running.process.wait(PATIENCE) == 0
        assert [note["event"] for note in running.notes("term") + running.notes("left")] == ["term", "left"]


def test_a_lag_keeps_it_serving_after_sigterm(tmp_path: Path) -> None:
    with stub(tmp_path, "--term-lag", "1") as running:
        began = time.monotonic()
        running.process.terminate()
        until(lambda: running.notes("term"), "the signal", PATIENCE)

        assert running.ask("POST", "/infill", b"{}").status == 200
        assert running.notes("request")[0]["stopping"]
        assert running.process.wait(PATIENCE) == 0
        assert time.monotonic() - began >= 1.0


def test_sigterm_can_be_ignored(tmp_path: Path) -> None:
    with stub(tmp_path, "--ignore-term") as running:
        running.process.terminate()
        until(lambda: running.notes("term"), "the signal", PATIENCE)

        assert running.ask("GET", "/health").status == 200
        assert running.notes("term")[0]["ignored"]


def test_forks_put_shells_around_it_and_sigterm_to_the_shell_does_not_reach_it(tmp_path: Path) -> None:
    with stub(tmp_path, "--fork", "--fork") as running:
        (note,) = running.notes("started")
        assert words_of(running.process.pid)[0] == "sh"
        assert note["pid"] != running.process.pid

        running.process.terminate()

        assert running.process.wait(PATIENCE) == -signal.SIGTERM
        assert running.ask("GET", "/health").status == 200


def test_two_that_want_the_lock_are_one_too_many_until_the_first_is_gone(tmp_path: Path) -> None:
    words = ("--vram", str(tmp_path / "lock"), "24G")
    with stub(tmp_path, *words), stub(tmp_path, *words, listening=False) as second:
        assert second.process.wait(PATIENCE) == 1
        assert "out of memory: 24G asked for" in second.output()
        assert len(second.notes("contended")) == 1
    with stub(tmp_path, *words) as third:
        assert third.ask("GET", "/health").status == 200


def test_it_writes_as_many_lines_as_it_was_asked_to_on_both_streams(tmp_path: Path) -> None:
    with stub(tmp_path, "--log-rate", "2000") as running:
        until(lambda: running.output().count("task 1999 ") == 2, "a second's lines, twice", PATIENCE)


@pytest.mark.parametrize("how", ["close", "abort"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_early_is_recorded_at_once(how: str, stream: bool, tmp_path: Path) -> None:
    with stub(tmp_path, "--first", "30") as running, Wire(running.port) as wire:
        wire.send(request_bytes("POST", "/v1/chat/completions", chat_body("m", stream=stream)))
        until(lambda: running.notes("arrived"), "the request", PATIENCE)

        left_at = wire.abort() if how == "abort" else wire.close()

        until(lambda: running.notes("request"), "the record of it", PATIENCE)
        (note,) = running.notes("request")
        assert note["left"]
        assert note["at"] - left_at < 1.0


def test_tokens_come_at_their_pace(tmp_path: Path) -> None:
    with stub(tmp_path, "--tokens", "3", "--gap", "0.1", "--first", "0.2") as running:
        for stream in (True, False):
            began = time.monotonic()
            answer = running.ask("POST", "/v1/chat/completions", chat_body("m", stream=stream))

            assert 0.4 <= time.monotonic() - began < 2.0
            assert answer.body.count("wörd".encode()) == 3


def test_a_stream_that_is_reset_is_broken(tmp_path: Path) -> None:
    with stub(tmp_path, "--reset-at", "1", "--gap", "0.1") as running, Wire(running.port) as wire:
        wire.send(request_bytes("POST", "/v1/chat/completions", chat_body("m", stream=True)))

        with pytest.raises(ConnectionResetError):
            wire.read_to_end()


def test_its_words_can_be_seen(tmp_path: Path) -> None:
    with stub(tmp_path, "--argv", str(tmp_path / "argv"), "--alias", 'a "b" #c'):
        words = json.loads((tmp_path / "argv").read_text())

    assert words[-2:] == ["--alias", 'a "b" #c']


def test_both_families_are_served_where_asked_for(tmp_path: Path) -> None:
    with stub(tmp_path, "--host", "::") as running:
        for host in ("127.0.0.1", "::1"):
            with socket.create_connection((host, running.port), timeout=PATIENCE) as wire:
                wire.sendall(b"GET /health HTTP/1.0\r\n\r\n")
                assert wire.recv(100).startswith(b"HTTP/1.1 200 OK")
