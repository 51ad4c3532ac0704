"""Sockets that somebody else has opened: what they are for is that a restart turns nobody away."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bench.launching import free_ports
from support.real_activation import HEALTH, activator, chat_of, load
from support.real_daemon import BIN, LLAMA_SWAP, Daemon, started, stub_config
from support.real_daemon_talk import until

pytestmark = pytest.mark.integration

TWISTD = (str(BIN / "twistd"), "-n", "--pidfile=", "llamaswap")
LOOPBACK = (socket.AF_INET, ("127.0.0.1", 0))

FRONTS = pytest.mark.parametrize("command", [LLAMA_SWAP, TWISTD], ids=["llama-swap", "twistd"])


REQUEST = b"GET /health HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
KEPT = b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n"


def read_all(connection: socket.socket) -> bytes:
    """Read until the other end closes."""
    return b"".join(iter(lambda: connection.recv(4096), b""))


def asked(family: socket.AddressFamily, place: Any) -> bytes:
    """Ask how it is, over a connection of any kind."""
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(30)
        connection.connect(place)
        connection.sendall(REQUEST)
        return read_all(connection)


@FRONTS
def test_a_restart_under_load_refuses_nobody_and_answers_everybody(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    config = stub_config(tmp_path)
    questions = [HEALTH, HEALTH, HEALTH, chat_of("a")]
    with activator(LOOPBACK) as box, ExitStack() as daemons:
        how = {**box.how(command, names=["llamaswap.socket"]), "ends_by_signal": command is TWISTD}
        daemon = daemons.enter_context(started(tmp_path, config, **how))
        assert daemon.port == box.ports[0]
        assert daemon.chat("a").status == 200
        with load(daemon.port, 8, questions) as told:
            for _ in range(2):
                before = told.statuses.count(200)
                until(lambda: told.statuses.count(200) > before + 40, "the daemon to serve")  # noqa: B023
                daemon.stop()
                daemon = daemons.enter_context(started(tmp_path, config, **how))
            until(lambda: daemon.chat("a").status == 200, "the last one to serve")

        assert told.troubles == []
        assert set(told.statuses) <= {200, 503}
        assert told.longest > 0.2, "nobody has noticed that there were moments without a daemon"


def test_who_comes_while_no_daemon_runs_waits_for_the_next_one(tmp_path: Path) -> None:
    with activator(LOOPBACK) as box, socket.create_connection(box.sockets[0].getsockname(), 30) as early:
        early.sendall(REQUEST)
        with started(tmp_path, stub_config(tmp_path), **box.how()):
            answer = read_all(early)

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"OK")


def test_who_was_accepted_and_has_not_asked_yet_is_still_answered_when_the_stop_begins(
    tmp_path: Path,
) -> None:
    with (
        activator(LOOPBACK) as box,
        started(tmp_path, stub_config(tmp_path), **box.how()) as daemon,
        socket.create_connection(box.sockets[0].getsockname(), 30) as quiet,
    ):
        assert daemon.get("/health").status == 200, "and so the one before it has been accepted"
        daemon.process.send_signal(signal.SIGTERM)
        until(lambda: "service.stopping" in daemon.output(), "the stop to begin")
        quiet.sendall(REQUEST)

        assert read_all(quiet).endswith(b"OK")
        assert daemon.process.wait(10) == 0


@FRONTS
def test_sockets_of_every_family_are_taken_over_and_left_as_they_were(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "socket"
    with activator((socket.AF_UNIX, str(path)), (socket.AF_INET6, ("::1", 0)), LOOPBACK) as box:
        path.chmod(0o600)
        how = {**box.how(command), "ends_by_signal": command is TWISTD}
        for _ in range(2):
            with started(tmp_path, stub_config(tmp_path), **how) as daemon:
                six, four = box.ports[1:]
                assert f"listening=unix:{path}, [::1]:{six}, 127.0.0.1:{four}" in daemon.output()
                assert daemon.port == four
                for family, place in ((socket.AF_UNIX, str(path)), (socket.AF_INET6, ("::1", six))):
                    assert asked(family, place).endswith(b"OK")
            assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("family", [socket.AF_UNIX, socket.AF_INET])
def test_no_more_are_let_in_than_may_be_on_a_socket_of_any_family(
    family: socket.AddressFamily, tmp_path: Path
) -> None:
    place = str(tmp_path / "socket") if family == socket.AF_UNIX else ("127.0.0.1", 0)
    config = {**stub_config(tmp_path), "limits": {"connections": 2}}
    with (
        activator((family, place), LOOPBACK) as box,
        started(tmp_path, config, **box.how()) as daemon,
        ExitStack() as clients,
    ):
        address = box.sockets[0].getsockname()
        held = [clients.enter_context(socket.socket(family, socket.SOCK_STREAM)) for _ in range(3)]
        for client in held:
            client.connect(address)
            client.sendall(KEPT)
            client.settimeout(0.5)
        assert [client.recv(4096)[-2:] for client in held[:2]] == [b"OK", b"OK"]
        with pytest.raises(TimeoutError):
            held[2].recv(4096)
        assert "doors.crowded connections=2" in daemon.output()

        held[0].close()
        held[2].settimeout(30)
        assert held[2].recv(4096).endswith(b"OK")


def test_an_address_that_is_given_goes_before_what_was_left(tmp_path: Path) -> None:
    with activator(LOOPBACK) as box:
        how = {**box.how(), "listen": True}
        with started(tmp_path, stub_config(tmp_path), **how) as daemon:
            assert daemon.port not in (0, box.ports[0])


def test_one_of_them_can_be_chosen_by_its_name_as_twisted_writes_it(tmp_path: Path) -> None:
    with activator(LOOPBACK, LOOPBACK) as box:
        how = box.how(names=["other", "web"])
        how["command"] = (*how["command"], "--listen", "systemd:domain=INET:name=web")
        with started(tmp_path, stub_config(tmp_path), **how) as daemon:
            assert daemon.port == box.ports[1]


def test_a_socket_that_is_not_there_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(json.dumps(stub_config(tmp_path)))
    words = [*LLAMA_SWAP, "--config", "config.yaml", "--listen", "systemd:index=0"]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith("cannot listen on systemd:index=0: 0 inherited")


def test_the_first_connection_starts_it_under_systemds_own_tool(tmp_path: Path) -> None:
    tool = shutil.which("systemd-socket-activate")
    if tool is None:
        pytest.skip("there is no systemd-socket-activate here")
    port = free_ports(1)
    command = (tool, f"--listen=127.0.0.1:{port}", "--", *LLAMA_SWAP)
    daemon = Daemon(tmp_path, json.dumps(stub_config(tmp_path)), port=port, command=command, listen=False)
    try:
        until(lambda: "Listening on" in daemon.output(), "the tool to listen")
        assert daemon.get("/health").body == b"OK"
        assert daemon.chat("a").status == 200
        daemon.stop()
    finally:
        daemon.destroy()
