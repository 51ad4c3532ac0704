"""What callers and operators do wrong, and what they are told."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support.real_daemon import LLAMA_SWAP, Daemon, events, started, stub_config
from support.real_daemon_talk import Wire, ask, chat_body, json_fields, request_bytes, until

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with started(tmp_path, stub_config(tmp_path)) as daemon:
        yield daemon


def test_a_name_that_is_no_model_and_a_body_without_one_are_404(daemon: Daemon) -> None:
    unknown = daemon.chat("gpt-5")
    nameless = ask(daemon.port, "POST", CHAT, b'{"messages":[]}', json_fields())
    broken = ask(daemon.port, "POST", CHAT, b'{"model', json_fields())

    assert [answer.status for answer in (unknown, nameless, broken)] == [404] * 3
    assert unknown.error == "no router for requested model"
    assert nameless.error == broken.error == "no model id could be identified"
    (row,) = daemon.rows(1)
    assert (row["model"], row["resp_status_code"]) == ("gpt-5", 404)


HOSTILE = ["1e2", "1_000", "0x10", "100, 0", "9" * 400, "1.5", "interactive!", "\xa0100", "100\x85", ""]


def test_hostile_priorities_count_as_zero_and_are_counted(daemon: Daemon) -> None:
    for value in HOSTILE:
        assert daemon.chat("a", priority=value).status == 200
    for value in ("INTERACTIVE", " +100\t", "9223372036854775807", "-9223372036854775808"):
        assert daemon.chat("a", priority=value).status == 200

    priorities = [row["metadata"]["serial_priority"] for row in daemon.rows(len(HOSTILE) + 4)]
    assert priorities == ["0"] * len(HOSTILE) + [
        "100",
        "100",
        "9223372036854775807",
        "-9223372036854775808",
    ]
    assert daemon.metrics()["llamaswap_scheduler_unparseable_priorities_total"] == len(HOSTILE)


def test_the_priority_header_reaches_the_model_unchanged(daemon: Daemon) -> None:
    told = daemon.chat("a", priority=" Batch ").json

    assert told["headers"]["x-llamaswap-priority"] == "Batch"


MALFORMED = {
    "no HTTP at all": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(60) + b"\r\n\r\n",
    "a blank in a field's name": b"GET /health HTTP/1.1\r\nHost: h\r\nBad Name: 1\r\n\r\n",
    "two lengths": b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "a length and chunks": b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a length that is none": b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
    "a chunk that is none": b"POST /v1/messages HTTP/1.1\r\nHost: h\r\n"
    b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n",
}


@pytest.mark.parametrize("words", MALFORMED.values(), ids=MALFORMED)
def test_malformed_requests_are_400_and_the_end_of_the_connection(words: bytes, daemon: Daemon) -> None:
    with Wire(daemon.port) as wire:
        wire.send(words)

        assert wire.read_to_end().startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_a_head_of_seventy_kilobytes_is_431(daemon: Daemon) -> None:
    with Wire(daemon.port) as wire:
        wire.send(request_bytes("GET", "/health", headers={"X-Long": "a" * 70 * 1024}))

        assert wire.read_to_end().startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")


def test_a_client_that_dies_in_the_middle_of_its_request_leaves_no_trace(daemon: Daemon) -> None:
    for words in (b"", b"GET /hea", request_bytes("POST", CHAT, chat_body("a"), json_fields())[:-5]):
        with Wire(daemon.port) as wire:
            wire.send(words)
            wire.abort()
    assert daemon.running() == {}
    assert daemon.rows() == []


def test_a_server_program_that_is_missing_is_named_to_callers_and_then_not_asked_again(
    tmp_path: Path,
) -> None:
    config = stub_config(tmp_path)
    config["models"]["a"]["cmd"] = "/opt/nowhere/llama-server --port ${PORT}"
    with started(tmp_path, config) as daemon:
        assert daemon.chat("b").status == 200
        answers = [daemon.chat("a") for _ in range(4)]

        assert [answer.status for answer in answers] == [500, 500, 503, 503]
        assert all("/opt/nowhere/llama-server" in answer.error for answer in answers)
        assert all("Traceback" not in answer.error for answer in answers)
        assert 1 <= int(answers[2].headers["Retry-After"]) <= 5

        def failures() -> list[str]:
            return [line for line in daemon.output().splitlines() if "load_failed" in line]

        until(lambda: len(failures()) >= 3, "the lines of three failures")
        assert len(failures()) == 3
        assert all("model=a" in line and "/opt/nowhere/llama-server" in line for line in failures())
        assert daemon.chat("b").status == 200


def test_an_upstream_that_dies_in_the_middle_never_looks_like_an_end(daemon: Daemon, tmp_path: Path) -> None:
    with Wire(daemon.port) as wire:
        fields = json_fields(stub={"tokens": 10, "die": 3})
        wire.send(request_bytes("POST", CHAT, chat_body("a", stream=True), fields))
        wire.read_until(b'"n": 2')
        with pytest.raises(ConnectionResetError):
            wire.read_to_end()
        assert b"0\r\n\r\n" not in wire.received

    assert daemon.chat("a").status == 200, "the next request starts it anew"
    died, well = daemon.rows(2)
    assert died["error_msg"] == "the upstream died in the middle of its response"
    assert "error_msg" not in well
    assert well["metadata"]["serial_load_ms"] != "0"
    assert len(events(tmp_path, "arrived")) == 2


@pytest.mark.parametrize("use", ["serial", "fifo"])
def test_who_waits_for_a_model_that_dies_gets_the_next_one(use: str, tmp_path: Path) -> None:
    config = stub_config(tmp_path)
    config["routing"]["scheduler"]["use"] = use
    with started(tmp_path, config) as daemon, ThreadPoolExecutor(8) as pool:
        for turn in range(3):
            with Wire(daemon.port) as wire:
                fields = json_fields(stub={"tokens": 10, "gap": 0.05, "die": 4}, tag="dies")
                wire.send(request_bytes("POST", CHAT, chat_body("a"), fields))
                wire.read_until(b'"n": 0')
                waiting = [pool.submit(daemon.chat, model) for model in "bbaaaaa"]
                until(lambda: daemon.waiting() >= (7 if use == "serial" else 2), "the others to wait")
                with pytest.raises(ConnectionResetError):
                    wire.read_to_end()
            statuses = [request.result(20).status for request in waiting]
            assert statuses[:2] == [200, 200]
            # Under fifo, what runs beside it on the same server dies with it.
            assert use == "fifo" or statuses[2:] == [200] * 5, turn


def test_an_upstream_that_dies_before_its_answer_is_a_502(daemon: Daemon, tmp_path: Path) -> None:
    with Wire(daemon.port) as wire:
        wire.send(request_bytes("POST", CHAT, chat_body("a"), json_fields(stub={"first": 30})))
        until(lambda: events(tmp_path, "arrived"), "its arrival")
        subprocess.run(["kill", "-9", *map(str, daemon.model_processes("a"))], check=True)
        assert wire.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 502 Bad Gateway\r\n")

    assert daemon.chat("a").status == 200


def refused_start(folder: Path, config: str, *words: str) -> tuple[int, list[str]]:
    """Start a daemon that cannot; returns its exit code and what it wrote."""
    path = folder / "config.yaml"
    path.write_text(config)
    began = time.monotonic()
    ended = subprocess.run(
        [*LLAMA_SWAP, "--config", str(path), *words], capture_output=True, text=True, timeout=30, check=False
    )
    assert time.monotonic() - began < 20
    assert "Traceback" not in ended.stderr + ended.stdout
    return ended.returncode, ended.stderr.splitlines()


BROKEN = """\
models:
  a:
    cmd: server --port ${PORT}
    ttl: soon
    concurrencyLimit: many
routing:
  scheduler:
    use: cereal
"""


def test_a_broken_configuration_is_a_list_of_places(tmp_path: Path) -> None:
    code, lines = refused_start(tmp_path, BROKEN, "--listen", "127.0.0.1:0")

    assert code == 1
    place = tmp_path / "config.yaml"
    assert [line.partition(" expected")[0] for line in lines] == [
        f"{place}:4:10: models.a.ttl:",
        f"{place}:5:23: models.a.concurrencyLimit:",
        f"{place}:8:10: routing.scheduler.use:",
    ]


def test_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    config: dict[str, Any] = stub_config(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, lines = refused_start(tmp_path, json.dumps(config), "--listen", f"127.0.0.1:{port}")

    assert code == 1
    (line,) = lines
    assert str(port) in line
    assert "in use" in line
