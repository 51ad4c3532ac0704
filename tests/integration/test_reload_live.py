"""Another configuration while requests run and wait: who is not concerned notices nothing."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from copy import deepcopy
from pathlib import Path

import pytest

from support.real_daemon import LLAMA_SWAP, Daemon, events, started, stub_config
from support.real_daemon_processes import words_of
from support.real_daemon_talk import Answer, Wire, chat_body, json_fields, request_bytes, until
from support.real_events import EventSource
from support.real_reload import WATCHING, changed, reload
from support.real_sizes import SteadyStream

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"
HUP = signal.SIGHUP


def begun(daemon: Daemon, model: str, tokens: int, gap: float = 0.02) -> Wire:
    """A stream whose first token has come."""
    wire = Wire(daemon.port)
    fields = json_fields(stub={"tokens": tokens, "gap": gap}, tag=f"job {model}")
    wire.send(request_bytes("POST", CHAT, chat_body(model), fields))
    wire.read_until(b'"n": 0')
    return wire


def queue_up(daemon: Daemon, pool: ThreadPoolExecutor, models: Sequence[str]) -> list[Future[Answer]]:
    """Requests that wait in this order, tagged by their place in it."""
    waiting = []
    for number, model in enumerate(models):
        waiting.append(pool.submit(daemon.chat, model, tag=f"{number} {model}"))
        until(lambda number=number: daemon.waiting() == number + 1, "it to wait")  # type: ignore[misc]  # mypy cannot infer a lambda's default
    return waiting


def arrivals(folder: Path) -> list[str]:
    """The tags of what reached a stub, in order."""
    return [note["tag"] for note in events(folder, "arrived") if note["tag"]]


@pytest.mark.parametrize(("command", "by"), [(LLAMA_SWAP, HUP), (WATCHING, 0)], ids=["SIGHUP", "watched"])
def test_twenty_streams_do_not_notice_that_another_model_changes(
    command: Sequence[str], by: int, tmp_path: Path
) -> None:
    config = stub_config(tmp_path, "a", "c", concurrencyLimit=30)
    config["routing"]["scheduler"]["use"] = "fifo"
    with started(tmp_path, config, command=command) as daemon, ExitStack() as streams:
        assert daemon.chat("a").status == 200
        pids = daemon.model_processes("a")
        running = [
            streams.enter_context(SteadyStream(daemon.port, "a", tokens=75, gap=0.02)) for _ in range(20)
        ]
        until(lambda: all(len(stream.arrivals) > 5 for stream in running), "twenty streams")

        reload(daemon, tmp_path, changed(config, "c", words="--load 0.1"), by=by)
        assert not any(stream.complete for stream in running)
        for stream in running:
            stream.wait()

        assert daemon.model_processes("a") == pids
        assert max(stream.largest_gap() for stream in running) < 0.5
        rows = daemon.rows(21)
        assert [row["resp_status_code"] for row in rows] == [200] * 21
        assert not any("error_msg" in row for row in rows)
        assert daemon.chat("c").status == 200
        assert "--load" in words_of(daemon.model_processes("c")[-1])


@pytest.mark.parametrize("use", ["serial", "fifo"])
def test_streams_of_a_model_that_changes_end_well_and_the_next_request_gets_the_new_one(
    use: str, tmp_path: Path
) -> None:
    config = stub_config(tmp_path, "a", "b")
    config["routing"]["scheduler"]["use"] = use
    with started(tmp_path, config) as daemon, ThreadPoolExecutor(2) as pool:
        with SteadyStream(daemon.port, "a", tokens=60, gap=0.02) as stream:
            until(lambda: len(stream.arrivals) > 3, "a stream")
            pids = daemon.model_processes("a")

            reload(daemon, tmp_path, changed(config, "a", words="--load 0.05"))
            after = pool.submit(daemon.chat, "a", tag="after")
            assert daemon.model_processes("a") == pids
            stream.wait()

        assert after.result(20).status == 200
        until(lambda: len(daemon.model_processes("a")) == 1, "one process of it")
        (pid,) = daemon.model_processes("a")
        assert pid not in pids
        assert "--load" in words_of(pid)
        assert [row["resp_status_code"] for row in daemon.rows(2)] == [200, 200]


def test_a_model_whose_lifetime_alone_changes_keeps_its_process(tmp_path: Path) -> None:
    config = stub_config(tmp_path, "a", "b")
    with started(tmp_path, config) as daemon:
        assert daemon.chat("a").status == 200
        pids = daemon.model_processes("a")

        reload(daemon, tmp_path, changed(config, "a", ttl=1))

        assert daemon.model_processes("a") == pids
        assert daemon.get("/running").json["running"][0]["ttl"] == 1
        until(lambda: not daemon.model_processes("a"), "its new lifetime to end", 5.0)


def test_who_waits_for_a_model_that_goes_is_told_404_and_the_others_keep_their_places(tmp_path: Path) -> None:
    config = stub_config(tmp_path, "a", "b", "c")
    with started(tmp_path, config) as daemon, ThreadPoolExecutor(8) as pool:
        with begun(daemon, "a", 100) as job:
            waiting = queue_up(daemon, pool, ["b", "c", "a", "b", "c"])
            without = deepcopy(config)
            del without["models"]["b"]

            reload(daemon, tmp_path, without)

            gone = [waiting[at].result(5) for at in (0, 3)]
            assert [answer.status for answer in gone] == [404, 404]
            assert all(answer.error for answer in gone)
            assert daemon.waiting() == 3
            job.read_until(b"[DONE]")
        assert [waiting[at].result(20).status for at in (1, 2, 4)] == [200] * 3
        # The resident one first: it is worth ten points.  Nobody was moved by the reload.
        assert arrivals(tmp_path) == ["job a", "2 a", "1 c", "4 c"]
        assert daemon.chat("b").status == 404
        assert len(daemon.rows(7)) == 7


def test_waiting_requests_keep_their_places_through_ten_reloads(tmp_path: Path) -> None:
    config = stub_config(tmp_path, "a", "b", "c")
    config["routing"]["scheduler"]["settings"] = {"serial": {"swapAffinityBonus": 0}}
    models = ["b", "c", "a", "c", "b", "a"]
    with started(tmp_path, config) as daemon, ThreadPoolExecutor(8) as pool:
        with begun(daemon, "a", 1000) as job:
            waiting = queue_up(daemon, pool, models)
            for number in range(10):
                reload(daemon, tmp_path, {**config, "metricsMaxInMemory": 1000 + number})
            assert daemon.waiting() == len(models)
            job.abort()
        assert [answer.result(20).status for answer in waiting] == [200] * len(models)
        assert arrivals(tmp_path) == ["job a", *(f"{n} {model}" for n, model in enumerate(models))]
        waits = [int(row["metadata"]["serial_queue_wait_ms"]) for row in daemon.rows(7)[1:]]
        assert waits == sorted(waits)


def test_another_bonus_applies_to_who_waits_already(tmp_path: Path) -> None:
    config = stub_config(tmp_path, "a", "b")
    with started(tmp_path, config) as daemon, ThreadPoolExecutor(8) as pool:
        with begun(daemon, "a", 1000) as job:
            waiting = queue_up(daemon, pool, ["b", "a", "b", "a"])
            other = deepcopy(config)
            other["routing"]["scheduler"]["settings"] = {"serial": {"swapAffinityBonus": 0}}
            reload(daemon, tmp_path, other)
            job.abort()
        assert [answer.result(20).status for answer in waiting] == [200] * 4
        assert arrivals(tmp_path) == ["job a", "0 b", "1 a", "2 b", "3 a"]


def test_another_scheduler_takes_over_who_waits(tmp_path: Path) -> None:
    config = stub_config(tmp_path, "a", "b")
    with started(tmp_path, config) as daemon, ThreadPoolExecutor(8) as pool:
        with begun(daemon, "a", 1000) as job:
            waiting = queue_up(daemon, pool, ["b", "a", "a"])
            other = deepcopy(config)
            other["routing"]["scheduler"]["use"] = "fifo"
            reload(daemon, tmp_path, other)
            # fifo lets a model serve several at once; b still waits for a's end.
            assert [waiting[at].result(10).status for at in (1, 2)] == [200, 200]
            assert not waiting[0].done()
            job.abort()
        assert waiting[0].result(20).status == 200


BROKEN = {
    "no YAML": "models: [unclosed",
    "a mistake": "models:\n  a:\n    cmd: s ${PORT}\n    ttl: soon\n",
    "an unknown scheduler": 'models: {a: {cmd: "s ${PORT}"}}\nrouting: {scheduler: {use: cereal}}\n',
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_configuration_changes_nothing_and_says_why(text: str, tmp_path: Path) -> None:
    config = stub_config(tmp_path, "a", "b")
    with started(tmp_path, config) as daemon, begun(daemon, "a", 40) as job:
        pids = daemon.model_processes("a")

        reload(daemon, tmp_path, text, told="reload.changed_nothing")

        job.read_until(b"[DONE]")
        assert daemon.model_processes("a") == pids
        (why,) = [line for line in daemon.output().splitlines() if "reload.rejected" in line]
        assert f"{tmp_path / 'config.yaml'}:" in why
        assert daemon.chat("b").status == 200
        reload(daemon, tmp_path, config)


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    config = stub_config(tmp_path, "a", "b")
    with started(tmp_path, config) as daemon:
        assert daemon.chat("a").status == 200

        reload(daemon, tmp_path, "", told="reload.")

        assert daemon.chat("a").status == 200
        assert "service.reloaded" not in daemon.output()


def test_running_models_keep_their_ports_when_one_comes_that_sorts_before_them(tmp_path: Path) -> None:
    config = stub_config(tmp_path, "b", "c", "d")
    config["routing"]["scheduler"]["use"] = "fifo"
    config["groups"] = {"all": {"swap": False, "members": ["b", "c"]}}
    with started(tmp_path, config) as daemon:
        assert [daemon.chat(model).status for model in "bc"] == [200, 200]
        before = {model["model"]: model["proxy"] for model in daemon.get("/running").json["running"]}
        pids = [daemon.model_processes(model) for model in "bc"]

        more = deepcopy(config)
        more["models"] = {"a": config["models"]["d"], **more["models"]}
        more["groups"]["all"]["members"] = ["a", "b", "c"]
        reload(daemon, tmp_path, more)

        assert daemon.chat("a").status == 200
        after = {model["model"]: model["proxy"] for model in daemon.get("/running").json["running"]}
        assert {name: after[name] for name in before} == before
        assert after["a"] not in before.values()
        assert [daemon.model_processes(model) for model in "bc"] == pids


def test_the_rows_survive_and_the_events_end_so_that_readers_come_again(tmp_path: Path) -> None:
    config = stub_config(tmp_path, "a", "b")
    with started(tmp_path, config) as daemon, EventSource(daemon.port) as source:
        assert daemon.chat("a").status == 200
        rows = daemon.rows(1)

        reload(daemon, tmp_path, changed(config, "b", unlisted=True))

        assert source.ended.wait(5)
        assert daemon.rows() == rows
        with EventSource(daemon.port) as again:
            listed = again.wait("modelStatus", lambda _: True)
            assert [model["unlisted"] for model in listed] == [False, True]


def test_reloads_without_pause_under_load_lose_no_request(tmp_path: Path) -> None:
    config = stub_config(tmp_path, "a", "b")
    with started(tmp_path, config) as daemon, ThreadPoolExecutor(4) as pool:
        end = time.monotonic() + 3.0

        def ask_on(model: str) -> list[int]:
            statuses = []
            while time.monotonic() < end:
                statuses.append(daemon.chat(model).status)
            return statuses

        asking = [pool.submit(ask_on, model) for model in "aab"]
        number = 0
        while time.monotonic() < end:
            number += 1
            words = "--load 0" if number % 2 else ""
            reload(daemon, tmp_path, changed(config, "b", words=words, ttl=number % 3))
        statuses = [status for asked in asking for status in asked.result(30)]

        assert number > 5
        assert set(statuses) == {200}
        assert len(daemon.rows(len(statuses))) == len(statuses)
