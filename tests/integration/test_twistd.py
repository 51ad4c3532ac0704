"""`twistd llamaswap`: the same daemon as a Twisted plugin."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

from bench.launching import free_ports
from support.real_daemon import BIN, started, stub_config
from support.real_daemon_talk import ask

pytestmark = pytest.mark.integration

TWISTD = (str(BIN / "twistd"), "-n", "--pidfile=", "llamaswap")


def twistd(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run twistd to its end."""
    return subprocess.run(
        [str(BIN / "twistd"), *words], capture_output=True, text=True, cwd=folder, timeout=60, check=False
    )


def test_twistd_lists_the_plugin_and_its_options(tmp_path: Path) -> None:
    assert re.search(r"^ +llamaswap +One GPU", twistd(tmp_path, "--help").stdout, re.MULTILINE)

    options = twistd(tmp_path, "llamaswap", "--help").stdout
    assert "--config=" in options
    assert "--listen=" in options


def test_it_serves_and_stops_like_llama_swap_and_leaves_no_pid_file(tmp_path: Path) -> None:
    with started(tmp_path, stub_config(tmp_path), command=TWISTD, ends_by_signal=True) as daemon:
        assert daemon.chat("a", priority="batch").json["model"] == "a"
        assert daemon.chat("b").json["model"] == "b"
        assert daemon.rows(2)[0]["metadata"]["serial_band"] == "batch"
        daemon.stop()
    assert list(tmp_path.glob("*.pid")) == []


def test_it_listens_wherever_it_is_told_to(tmp_path: Path) -> None:
    other, path = free_ports(1), tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))  # by a daemon that was killed, whose number is another's by now
    (tmp_path / "socket.lock").symlink_to(str(os.getpid()))
    command = (*TWISTD, "--listen", f"127.0.0.1:{other}", "--listen", f"unix:{path}")
    with started(tmp_path, stub_config(tmp_path), command=command, ends_by_signal=True) as daemon:
        places = {ask(port, "GET", "/health").body for port in (daemon.port, other)}
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(10)
            connection.connect(str(path))
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(4096), b""))

        assert places == {b"OK"}
        assert answer.endswith(b"\r\n\r\nOK")


@pytest.mark.parametrize("words", [(), ("--config", "nowhere.yaml"), ("--listen", "over there")], ids=str)
def test_what_it_cannot_do_is_said_without_a_traceback(words: tuple[str, ...], tmp_path: Path) -> None:
    ended = twistd(tmp_path, "-n", "--pidfile=", "llamaswap", *words)

    assert ended.returncode == 1
    assert "Traceback" not in ended.stdout + ended.stderr
    assert (ended.stdout + ended.stderr).strip()


def test_a_port_that_is_taken_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(json.dumps(stub_config(tmp_path)))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = twistd(
            tmp_path, "-n", "--pidfile=", "llamaswap", "--config", "config.yaml", "--listen", address
        )

    assert ended.returncode == 1
    assert "Traceback" not in ended.stdout + ended.stderr
    assert (
        len(re.findall(r"llamaswap: cannot listen on tcp:.*already in use$", ended.stdout, re.MULTILINE)) == 1
    )
