"""How a daemon ends: in order, in a hurry, or without a word; and that another one can follow."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bench.launching import free_ports
from llamaswap.service import LEAST_CHILD_GRACE
from llamaswap.signalling import SAME_WISH
from support.real_daemon import events, started, stub_config
from support.real_daemon_talk import Wire, chat_body, json_fields, request_bytes, until

pytestmark = pytest.mark.integration

FORKING = "bash -c '\"$@\" & wait' wrapper {}"


def streaming(model: str, tokens: int, gap: float, tag: str = "") -> bytes:
    """A request for a stream of events."""
    fields = json_fields(stub={"tokens": tokens, "gap": gap}, tag=tag)
    return request_bytes("POST", "/v1/chat/completions", chat_body(model, stream=True), fields)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_lets_the_running_job_finish_and_refuses_who_waits_at_once(
    signum: int, tmp_path: Path
) -> None:
    with (
        started(tmp_path, stub_config(tmp_path)) as daemon,
        ThreadPoolExecutor(3) as pool,
        Wire(daemon.port) as job,
    ):
        job.send(streaming("a", tokens=20, gap=0.1))
        job.read_until(b'"n": 0')
        waiting = [pool.submit(daemon.chat, model) for model in ("a", "b", "b")]
        until(lambda: daemon.waiting() == 3, "three requests to wait")

        signalled = time.monotonic()
        daemon.process.send_signal(signum)
        refusals = [request.result(10) for request in waiting]
        refused_after = time.monotonic() - signalled
        rest = job.read_until(b"0\r\n\r\n")
        finished_after = time.monotonic() - signalled

        assert [refusal.status for refusal in refusals] == [503] * 3
        assert all(refusal.headers["Retry-After"] == "5" for refusal in refusals)
        assert rest.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
        assert rest.count(b'"sent"') == 20
        assert refused_after < finished_after - 0.5, "those who wait are told before the job has ended"
        assert daemon.process.wait(10) == 0
        daemon.assert_alone()


def test_the_echo_of_a_signal_changes_nothing(tmp_path: Path) -> None:
    with started(tmp_path, stub_config(tmp_path)) as daemon, Wire(daemon.port) as job:
        job.send(streaming("a", tokens=8, gap=0.1))
        job.read_until(b'"n": 0')

        daemon.process.send_signal(signal.SIGINT)
        daemon.process.send_signal(signal.SIGINT)
        daemon.process.send_signal(signal.SIGTERM)

        assert b"[DONE]" in job.read_until(b"0\r\n\r\n")
        assert daemon.process.wait(10) == 0
        daemon.assert_alone()


@pytest.mark.parametrize("words", ["", "--ignore-term"], ids=["heeds TERM", "ignores TERM"])
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_cuts_the_running_job_and_gives_servers_little_time(
    signum: int, words: str, tmp_path: Path
) -> None:
    with started(tmp_path, stub_config(tmp_path, words=words)) as daemon, Wire(daemon.port) as job:
        job.send(streaming("a", tokens=600, gap=0.1))
        job.read_until(b'"n": 0')
        daemon.process.send_signal(signum)
        assert not job.ends_within(2 * SAME_WISH, b"0\r\n\r\n"), "the job has its time"
        assert daemon.process.poll() is None

        took = daemon.stop(signum)

        assert took < LEAST_CHILD_GRACE + 3.0
        with pytest.raises(ConnectionResetError):
            job.read_to_end()
        assert b"0\r\n\r\n" not in job.received
        assert "service.hurried" in daemon.output()


def test_a_third_signal_kills_a_deaf_server_at_once(tmp_path: Path) -> None:
    command = (sys.executable, "-c", IN_NO_HURRY)
    config = stub_config(tmp_path, words="--ignore-term")
    with started(tmp_path, config, command=command) as daemon, Wire(daemon.port) as job:
        job.send(streaming("a", tokens=600, gap=0.1))
        job.read_until(b'"n": 0')
        for count in range(2):
            daemon.process.send_signal(signal.SIGTERM)
            assert not job.ends_within(2 * SAME_WISH, b"0\r\n\r\n"), f"after signal {count + 1}"

        assert daemon.stop() < 5.0


@pytest.mark.parametrize("moment", ["before the start", "after the start"])
def test_a_signal_before_the_reactor_runs_stops_it_in_order(moment: str, tmp_path: Path) -> None:
    config = {**stub_config(tmp_path), "hooks": {"on_startup": {"preload": ["a"]}}}
    store = {"store": {"path": str(tmp_path / "store.db")}}
    (tmp_path / "config.yaml").write_text(json.dumps(config | store))
    program = IMPATIENT.replace("BEFORE", str(moment == "before the start"))
    words = [sys.executable, "-c", program, "--config", "config.yaml", "--listen", "127.0.0.1:0"]

    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert "service.stopped" in ended.stdout
    assert list(tmp_path.glob("store.db-*")) == [], "the store was closed"


def test_a_stop_lets_a_job_finish_that_still_loads(tmp_path: Path) -> None:
    config = stub_config(tmp_path, words="--load 1")
    with started(tmp_path, config) as daemon, ThreadPoolExecutor(2) as pool:
        job = pool.submit(daemon.chat, "a")
        until(lambda: daemon.running() == {"a": "starting"}, "the load")
        waiting = pool.submit(daemon.chat, "b")
        until(lambda: daemon.waiting() == 1, "the other to wait")

        daemon.process.send_signal(signal.SIGTERM)

        assert waiting.result(10).status == 503
        assert job.result(10).status == 200
        assert daemon.process.wait(10) == 0
        daemon.assert_alone()


IN_NO_HURRY = """
import llamaswap.service
from llamaswap.cli import main

llamaswap.service.LEAST_CHILD_GRACE = 60.0
main()
"""

IMPATIENT = """
import signal

from llamaswap.cli import main
from llamaswap.service import LlamaSwapService

start = LlamaSwapService.startService


def start_and_be_told(self):
    if BEFORE:
        signal.raise_signal(signal.SIGTERM)
    start(self)
    if not BEFORE:
        signal.raise_signal(signal.SIGTERM)


LlamaSwapService.startService = start_and_be_told
main()
"""

IN_A_HURRY = """
import llamaswap.service
from llamaswap.cli import main

llamaswap.service.STOP_BUDGET = 1.0
llamaswap.service.LEAST_CHILD_GRACE = 0.5
main()
"""


def test_a_job_that_outlasts_the_budget_is_cut_and_a_deaf_child_is_killed(tmp_path: Path) -> None:
    config = stub_config(tmp_path, words="--ignore-term")
    command = (sys.executable, "-c", IN_A_HURRY)
    with started(tmp_path, config, command=command) as daemon, Wire(daemon.port) as job:
        job.send(streaming("a", tokens=100, gap=0.1))
        job.read_until(b'"n": 0')

        assert 1.0 < daemon.stop() < 5.0

        with pytest.raises(ConnectionResetError):
            job.read_to_end()
        assert b"0\r\n\r\n" not in job.received


def test_who_still_loads_when_the_budget_is_used_up_is_told_so(tmp_path: Path) -> None:
    config = stub_config(tmp_path, words="--load 60")
    command = (sys.executable, "-c", IN_A_HURRY)
    with started(tmp_path, config, command=command) as daemon, ThreadPoolExecutor(1) as pool:
        job = pool.submit(daemon.chat, "a")
        until(lambda: daemon.running() == {"a": "starting"}, "the load")

        assert daemon.stop() < 5.0

        refusal = job.result(5)
        assert (refusal.status, refusal.headers["Retry-After"]) == (503, "5")
        assert "status=503" in daemon.output()


@pytest.mark.parametrize("wrap", ["{}", FORKING], ids=["plain", "forking"])
def test_a_killed_daemon_leaves_no_child_and_the_next_one_takes_its_place(wrap: str, tmp_path: Path) -> None:
    port = free_ports(1)
    deaf, config = (stub_config(tmp_path, words=words, wrap=wrap) for words in ("--ignore-term", ""))
    with started(tmp_path, deaf | {"startPort": config["startPort"]}, port=port) as first:
        assert first.chat("a").json["model"] == "a"
        assert len(first.model_processes("a")) == (1 if wrap == "{}" else 2)

        first.process.kill()
        first.process.wait()
        first.assert_alone()

    with started(tmp_path, config, port=port) as second:
        assert second.chat("a").status == 200
        assert second.chat("b").status == 200
        until(lambda: second.model_processes("a") == [], "the end of a, grandchild included")


def test_a_port_that_the_old_child_still_has_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    config = stub_config(tmp_path)
    with (
        socket.create_server(("127.0.0.1", config["startPort"])) as old,
        started(tmp_path, config) as daemon,
        ThreadPoolExecutor(1) as pool,
    ):
        asked = pool.submit(daemon.chat, "a")
        until(lambda: daemon.running() == {"a": "starting"}, "the load")
        assert not asked.done()

        old.close()

        assert asked.result(20).status == 200


def test_what_a_killed_daemon_has_written_is_there_for_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    config = {**stub_config(tmp_path), "store": {"path": str(path)}}
    with started(tmp_path, config) as first, Wire(first.port) as job:
        for _ in range(3):
            assert first.chat("a").status == 200
        before = [row | {"has_capture": False} for row in first.rows(3)]  # those are in memory
        job.send(streaming("a", tokens=600, gap=0.1))
        job.read_until(b'"n": 0')
        first.process.kill()
        first.process.wait()
        assert path.with_name("store.db-wal").stat().st_size > 0, "it had no time to tidy up"
        first.assert_alone()

    with started(tmp_path, config) as second:
        assert second.rows(3) == before
        assert second.chat("b").status == 200
        assert [row["id"] for row in second.rows(4)] == [1, 2, 3, 4]
    with sqlite3.connect(path) as store:
        assert store.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    store.close()


def test_a_wrapper_that_forks_is_stopped_with_its_child_on_unload_swap_and_stop(tmp_path: Path) -> None:
    with started(tmp_path, stub_config(tmp_path, wrap=FORKING)) as daemon:
        daemon.chat("a")
        assert daemon.get("/unload").body == b"OK"
        assert daemon.model_processes("a") == []

        daemon.chat("a")
        daemon.chat("b")
        assert daemon.model_processes("a") == []
        assert daemon.stop() < 5.0


def test_a_stop_command_that_reaches_only_the_wrapper_ends_its_child_too(tmp_path: Path) -> None:
    config = stub_config(tmp_path, wrap=FORKING, cmdStop="kill ${PID}")
    with started(tmp_path, config) as daemon:
        daemon.chat("a")

        began = time.monotonic()
        assert daemon.chat("b").status == 200

        assert time.monotonic() - began < 5.0, "it need not be killed"
        assert daemon.model_processes("a") == []


def test_a_swap_waits_for_the_running_stream(tmp_path: Path) -> None:
    with started(tmp_path, stub_config(tmp_path, "a", "b", "c")) as daemon, ThreadPoolExecutor(2) as pool:
        with Wire(daemon.port) as job:
            job.send(streaming("a", tokens=10, gap=0.1, tag="first"))
            job.read_until(b'"n": 0')
            others = [pool.submit(daemon.chat, "b", tag="b")]
            until(lambda: daemon.waiting() == 1, "b's place in the queue")
            others.append(pool.submit(daemon.chat, "c", tag="c"))
            until(lambda: daemon.waiting() == 2, "c's place in the queue")
            assert job.read_until(b"0\r\n\r\n").count(b'"sent"') == 10

        assert [other.result(20).status for other in others] == [200, 200]
        assert [note["tag"] for note in events(tmp_path, "answered")] == ["first", "b", "c"]


def test_an_unload_ends_the_job_and_who_waits_goes_on_waiting(tmp_path: Path) -> None:
    with (
        started(tmp_path, stub_config(tmp_path)) as daemon,
        ThreadPoolExecutor(3) as pool,
        Wire(daemon.port) as job,
    ):
        job.send(streaming("a", tokens=100, gap=0.1))
        job.read_until(b'"n": 0')
        waiting = [pool.submit(daemon.chat, model) for model in ("a", "b", "a")]
        until(lambda: daemon.waiting() == 3, "three requests to wait")

        assert daemon.get("/unload").body == b"OK"

        with pytest.raises(ConnectionResetError):
            job.read_to_end()
        assert [request.result(20).status for request in waiting] == [200] * 3


def test_fifty_swaps_leave_descriptors_and_memory_as_they_were(tmp_path: Path) -> None:
    with started(tmp_path, stub_config(tmp_path)) as daemon:
        for _ in range(3):
            daemon.chat("a")
            daemon.chat("b")
        descriptors_before, memory_before = daemon.descriptors(), daemon.memory()

        for _ in range(25):
            assert daemon.chat("a").status == 200
            assert daemon.chat("b").status == 200

        until(lambda: len(daemon.descriptors()) <= len(descriptors_before), "as few descriptors as before")
        assert daemon.memory() - memory_before < 6 << 20
        loads = daemon.metrics()['llamaswap_model_load_seconds_count{model="a"}']
        assert loads == 28
