"""What a service manager hears of a real daemon, and what of it its children see."""

from __future__ import annotations

import signal
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.real_daemon import BIN, LLAMA_SWAP, started, stub_config
from support.real_daemon_talk import Wire, chat_body, json_fields, request_bytes, until

pytestmark = pytest.mark.integration

TWISTD = (str(BIN / "twistd"), "-n", "--pidfile=", "llamaswap")
FRONTS = pytest.mark.parametrize("command", [LLAMA_SWAP, TWISTD], ids=["llama-swap", "twistd"])
PATIENCE = 0.4  # seconds of silence that the manager bears


class Manager:
    """A service manager that listens, and keeps what it has heard."""

    def __init__(self, listening: socket.socket, name: str) -> None:
        self.environ = {"NOTIFY_SOCKET": name}
        self._socket = listening
        self.heard: list[dict[str, str]] = []

    def listen(self) -> None:
        """Take in what has come."""
        while True:
            try:
                message = self._socket.recv(4096).decode()
            except BlockingIOError:
                return
            self.heard.append(dict(line.split("=", 1) for line in message.split("\n")))

    def hears(self, word: str, times: int = 1) -> dict[str, str]:
        """Wait until it has heard a word so many times; returns the last message with it."""

        def found() -> list[dict[str, str]]:
            self.listen()
            return [message for message in self.heard if word in message]

        until(lambda: len(found()) >= times, f"{word} in {self.heard}")
        return found()[-1]

    def words(self) -> list[str]:
        """The states it was told of so far, in order, and without signs of life."""
        self.listen()
        states = ("READY", "RELOADING", "STOPPING")
        return [word for message in self.heard for word in message if word in states]


@contextmanager
def manager() -> Iterator[Manager]:
    """A manager at a place of its own."""
    name = f"llamaswap-test-{uuid.uuid4().hex}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0{name}")
        listening.setblocking(False)
        yield Manager(listening, f"@{name}")


@FRONTS
def test_it_hears_of_the_start_of_reloads_and_of_the_stop(command: tuple[str, ...], tmp_path: Path) -> None:
    ends = {"command": command, "ends_by_signal": command is TWISTD}
    with (
        manager() as boss,
        started(tmp_path, stub_config(tmp_path), environ=boss.environ, **ends) as daemon,
        Wire(daemon.port) as job,
    ):
        assert boss.hears("READY")["STATUS"] == f"listening on 127.0.0.1:{daemon.port}"

        before = int(time.monotonic() * 1e6)
        daemon.process.send_signal(signal.SIGHUP)
        # systemd compares this with the moment of its own signal, on the clock that all processes share.
        assert before <= int(boss.hears("RELOADING")["MONOTONIC_USEC"]) <= time.monotonic() * 1e6
        assert boss.hears("READY", 2)["STATUS"].startswith("reloaded; listening on ")

        right = (tmp_path / "config.yaml").read_text()
        (tmp_path / "config.yaml").write_text("models: [")
        daemon.process.send_signal(signal.SIGHUP)
        assert "kept the configuration: the new one has mistakes" in boss.hears("READY", 3)["STATUS"]
        (tmp_path / "config.yaml").write_text(right)

        fields = json_fields(stub={"tokens": 10, "gap": 0.1})
        job.send(request_bytes("POST", "/v1/chat/completions", chat_body("a", stream=True), fields))
        job.read_until(b'"n": 0')
        daemon.process.send_signal(signal.SIGTERM)
        assert boss.hears("STOPPING")["STATUS"] == "waiting for 1 running job"
        assert b"[DONE]" in job.read_until(b"0\r\n\r\n")
        assert daemon.process.wait(10) == (-signal.SIGTERM if command is TWISTD else 0)

        expected = ["READY", "RELOADING", "READY", "RELOADING", "READY", "STOPPING"]
        assert boss.words() == expected


def test_it_hears_signs_of_life_until_the_very_end_and_none_of_a_daemon_that_is_stuck(tmp_path: Path) -> None:
    watched = {"WATCHDOG_USEC": str(int(PATIENCE * 1e6))}
    with (
        manager() as boss,
        started(tmp_path, stub_config(tmp_path), environ=boss.environ | watched) as daemon,
    ):
        boss.hears("WATCHDOG", 4)
        daemon.process.send_signal(signal.SIGSTOP)
        until(lambda: Path(f"/proc/{daemon.pid}/stat").read_text().split()[2] == "T", "it to stand still")
        boss.listen()
        before = len(boss.heard)
        time.sleep(3 * PATIENCE)
        boss.listen()
        assert len(boss.heard) == before

        daemon.process.send_signal(signal.SIGCONT)
        boss.hears("WATCHDOG", before + 2)


def test_a_daemon_that_is_ended_for_its_silence_says_where_it_was_stuck_and_leaves_no_child(
    tmp_path: Path,
) -> None:
    watched = {"WATCHDOG_USEC": "60000000"}
    with (
        manager() as boss,
        started(tmp_path, stub_config(tmp_path), environ=boss.environ | watched) as daemon,
    ):
        assert daemon.chat("a").status == 200

        daemon.process.send_signal(signal.SIGABRT)

        assert daemon.process.wait(10) == -signal.SIGABRT
        daemon.assert_alone()
        said = daemon.output()
        assert "Fatal Python error: Aborted" in said
        assert "in mainLoop" in said


def test_models_servers_see_nothing_of_the_manager(tmp_path: Path) -> None:
    watched = {"WATCHDOG_USEC": "60000000", "LISTEN_FDS": "1", "LISTEN_PID": "1", "LISTEN_FDNAMES": "x"}
    with (
        manager() as boss,
        started(tmp_path, stub_config(tmp_path), environ=boss.environ | watched | {"KEPT": "1"}) as daemon,
    ):
        assert daemon.chat("a").status == 200
        (pid,) = daemon.model_processes("a")
        names = {entry.split("=")[0] for entry in Path(f"/proc/{pid}/environ").read_text().split("\0")}

        assert "KEPT" in names
        assert [name for name in names if name.startswith(("NOTIFY_", "WATCHDOG_", "LISTEN_"))] == []
