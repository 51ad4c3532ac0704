"""`/api/events` while requests run: what a page that shows them sees, and what it can end."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support.real_daemon import Daemon, started, stub_config
from support.real_daemon_talk import Wire, ask, chat_body, json_fields, request_bytes, until
from support.real_events import EventSource
from support.real_sizes import MIB, forget_peak, peak

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with started(tmp_path, stub_config(tmp_path)) as daemon:
        yield daemon


def chat(stub: dict[str, object] | None = None, tag: str = "", model: str = "a") -> bytes:
    """A chat request on the wire."""
    return request_bytes("POST", CHAT, chat_body(model), json_fields(stub=stub, tag=tag))


def cancel(daemon: Daemon, number: str) -> int:
    """Cancel a request by its id; returns the status."""
    return ask(daemon.port, "POST", f"/api/inflight/{number}/cancel").status


def flight_of(source: EventSource, model: str) -> str:
    """The id of the request in flight that wants a model."""
    told = source.wait("inflight", lambda data: data.get("request", {}).get("model") == model)
    number: str = told["request"]["id"]
    return number


FIRST = ["logData", "logData", "modelStatus", "uiConfig", "profileChanged", "inflight", "queueStatus"]


def test_a_newcomer_is_told_how_things_stand_in_a_fixed_order(daemon: Daemon) -> None:
    daemon.chat("a")
    with EventSource(daemon.port) as source:
        until(lambda: len(source.events) >= len(FIRST), "the first events")
        first = source.events[: len(FIRST)]

    assert [event.type for event in first] == FIRST
    assert [event.data["source"] for event in first[:2]] == ["proxy", "upstream"]
    assert "service.started" in first[0].data["data"]
    assert "stub a listens" in first[1].data["data"]
    assert [(row["id"], row["state"]) for row in first[2].data] == [("a", "ready"), ("b", "stopped")]
    assert first[5].data["operation"] == "snapshot"
    assert first[5].data.get("requests", []) == []


def test_a_request_is_told_from_its_arrival_to_its_row(daemon: Daemon) -> None:
    with EventSource(daemon.port) as source:
        source.wait("queueStatus", lambda _: True)
        answer = daemon.chat("a", stub={"tokens": 16, "gap": 0.05})
        (row,) = daemon.rows(1)
        source.wait("activity", lambda data: data["id"] == row["id"])
        source.wait("inflight", lambda data: data["operation"] == "remove")

    flights = source.of("inflight")[1:]
    upserts = [told["request"] for told in flights if told["operation"] == "upsert"]
    assert {told["id"] for told in upserts} == {flights[-1]["id"]}
    assert [told["operation"] for told in flights].count("remove") == 1
    assert upserts[0]["resp_bytes"] == 0
    assert upserts[0]["resp_headers"] == {}
    assert any(0 < told["resp_bytes"] < len(answer.body) for told in upserts)
    assert any(told["resp_headers"].get("Content-Type") == "text/event-stream" for told in upserts)
    assert source.states("a") == ["stopped", "starting", "ready"]


def test_the_end_of_a_job_that_is_no_request_in_flight_is_told_too(daemon: Daemon) -> None:
    with EventSource(daemon.port) as source, ThreadPoolExecutor(2) as pool:
        page = pool.submit(
            ask, daemon.port, "GET", "/upstream/a/page", None, json_fields(stub={"first": 0.7})
        )
        source.wait("queueStatus", lambda told: told["running"] == ["a"])
        waiting = pool.submit(daemon.chat, "a", stub={"first": 1.5})
        source.wait("queueStatus", lambda told: sum(depths(told)) == 1)
        assert page.result().status == 200

        def goes(told: Any) -> bool:
            return sum(depths(told)) == 0 and told["running"] == ["a"]

        until(lambda: goes(source.of("queueStatus")[-1]), "the one who waited to go")
        assert not waiting.done()
        assert waiting.result().status == 200
        until(lambda: source.of("queueStatus")[-1]["running"] == [], "the end")


def test_the_queue_is_told_while_it_fills_and_empties(daemon: Daemon) -> None:
    with EventSource(daemon.port) as source, Wire(daemon.port) as job, ThreadPoolExecutor(3) as pool:
        job.send(chat({"tokens": 100, "gap": 0.02}))
        job.read_until(b'"n": 0')
        waiting = [pool.submit(daemon.chat, "b", priority) for priority in ("100", "0", "-100")]
        until(lambda: daemon.waiting() == 3, "three to wait")
        full = source.wait("queueStatus", lambda told: sum(depths(told)) == 3, "a queue of three")
        job.abort()
        assert [answer.result(20).status for answer in waiting] == [200] * 3
        until(lambda: sum(depths(source.of("queueStatus")[-1])) == 0, "an empty queue")

    assert depths(full) == [1, 1, 1]


def depths(told: Any) -> list[int]:
    """How many wait, band by band, as a `queueStatus` event tells."""
    return [told["bands"][band]["depth"] for band in ("interactive", "normal", "batch")]


def test_a_queued_request_that_is_cancelled_gets_an_answer_and_its_row_says_499(daemon: Daemon) -> None:
    with EventSource(daemon.port) as source, Wire(daemon.port) as job, ThreadPoolExecutor(1) as pool:
        job.send(chat({"tokens": 200, "gap": 0.02}))
        job.read_until(b'"n": 0')
        queued = pool.submit(daemon.chat, "b")
        until(lambda: daemon.waiting() == 1, "one to wait")

        assert cancel(daemon, flight_of(source, "b")) == 200

        answer = queued.result(5)
        assert answer.status == 503
        assert answer.error == "the request was cancelled"
        assert daemon.waiting() == 0
        job.abort()
    (row,) = [row for row in daemon.rows(2) if row["model"] == "b"]
    assert row["resp_status_code"] == 499
    assert "cancelled" in row["error_msg"]
    assert daemon.model_processes("b") == []


def test_a_stream_that_is_cancelled_is_cut_and_the_box_is_free(daemon: Daemon, tmp_path: Path) -> None:
    with EventSource(daemon.port) as source, Wire(daemon.port) as job:
        job.send(chat({"tokens": 500, "gap": 0.02}, tag="job"))
        job.read_until(b'"n": 3')

        assert cancel(daemon, flight_of(source, "a")) == 200

        with pytest.raises(ConnectionResetError):
            job.read_to_end()
        assert b"0\r\n\r\n" not in job.received
        assert daemon.chat("a").status == 200
    assert [row["resp_status_code"] for row in daemon.rows(2)] == [200, 200]
    assert daemon.rows()[0]["error_msg"]


def test_a_request_that_is_cancelled_before_its_answer_is_503(daemon: Daemon) -> None:
    with EventSource(daemon.port) as source, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(daemon.chat, "a", None, {"first": 30})
        number = flight_of(source, "a")
        source.wait("modelStatus", lambda rows: rows[0]["state"] == "ready")
        assert cancel(daemon, number) == 200
        assert asked.result(5).status == 503
        assert cancel(daemon, number) == 404
    assert daemon.chat("a").status == 200


def test_a_reader_that_never_reads_costs_a_bounded_amount_and_delays_nobody(daemon: Daemon) -> None:
    daemon.chat("a")
    lazy = socket.socket()
    lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    lazy.connect(("127.0.0.1", daemon.port))
    lazy.sendall(request_bytes("GET", "/api/events"))
    with lazy, EventSource(daemon.port) as source:
        source.wait("queueStatus", lambda _: True)
        before = forget_peak(daemon.pid)
        fields = {**json_fields(), "X-Long": "x" * 30_000}  # each upsert repeats it
        began = time.monotonic()
        for _ in range(150):
            assert ask(daemon.port, "POST", CHAT, chat_body("a"), fields).status == 200
        took = time.monotonic() - began
        grown = peak(daemon.pid) - before
        until(lambda: len(source.of("activity")) >= 150, "every row to be told to who reads")

    assert sum(len(str(data)) for data in source.of("inflight")) > 8 * MIB
    assert grown < 12 * MIB, grown
    assert took < 15
    assert daemon.output().count("events.reader_lags") == 1
