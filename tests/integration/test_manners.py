"""What clients of every kind see on the wire, and what their upstream sees of them."""

from __future__ import annotations

import hashlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from support.real_daemon import Daemon, events, started, stub_config
from support.real_daemon_talk import Wire, ask, chat_body, json_fields, request_bytes, until

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with started(tmp_path, stub_config(tmp_path)) as daemon:
        daemon.chat("a")
        yield daemon


def chat(stub: dict[str, object] | None = None, tag: str = "", model: str = "a") -> bytes:
    """A chat request on the wire."""
    return request_bytes("POST", CHAT, chat_body(model), json_fields(stub=stub, tag=tag))


def head_and_body(wire: Wire) -> tuple[bytes, bytes]:
    """Read one answer that says its length."""
    head = wire.read_until(b"\r\n\r\n")
    (length,) = [line[15:] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    return head, wire.read_exactly(int(length))


Leaving = tuple[dict[str, object], bytes, Callable[[Wire], float]]

WAYS_TO_LEAVE: dict[str, Leaving] = {
    "reset in the middle of a stream": ({"tokens": 100, "gap": 0.05}, b'"n": 0', Wire.abort),
    "close in the middle of a stream": ({"tokens": 100, "gap": 0.05}, b'"n": 0', Wire.close),
    "reset before the first byte": ({"first": 20}, b"", Wire.abort),
    "close before the first byte": ({"first": 20}, b"", Wire.close),
}


def moment(folder: Path, event: str, tag: str) -> float:
    """Wait until a stub has noted this; returns when it happened."""

    def found() -> list[float]:
        return [note["at"] for note in events(folder, event) if note["tag"] == tag]

    until(found, f"{event}: {tag}")
    return found()[0]


def leave(daemon: Daemon, folder: Path, way: Leaving, tag: str) -> float:
    """Leave a request in some way; returns the seconds until its upstream noticed."""
    stub, first, depart = way
    with Wire(daemon.port) as wire:
        wire.send(chat(stub, tag))
        moment(folder, "arrived", tag)
        if first:
            wire.read_until(first)
        left = depart(wire)
    return moment(folder, "left", tag) - left


def test_a_client_that_leaves_closes_its_upstream_within_milliseconds(
    daemon: Daemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turns = [(way, f"{name} {turn}") for name, way in WAYS_TO_LEAVE.items() for turn in range(6)]

    delays = [leave(daemon, tmp_path, way, tag) for way, tag in turns]

    median, worst = 1000 * statistics.median(delays), 1000 * max(delays)
    with capsys.disabled():
        sys.stdout.write(
            f"\na client that leaves: upstream closed after {median:.2f} ms, at worst {worst:.2f} ms\n"
        )
    assert statistics.median(delays) < 0.1
    assert max(delays) < 0.5
    rows = daemon.rows(1 + len(delays))
    assert [row["resp_status_code"] for row in rows[1:]] == [200] * 12 + [499] * 12
    assert all("left" in row["error_msg"] for row in rows[1:13])
    assert all("abandoned by its client" in row["error_msg"] for row in rows[13:])


def test_who_leaves_the_queue_is_never_served_and_frees_its_place(daemon: Daemon, tmp_path: Path) -> None:
    with Wire(daemon.port) as job, Wire(daemon.port) as leaving, ThreadPoolExecutor(1) as pool:
        job.send(chat({"tokens": 40, "gap": 0.05}, "job"))
        job.read_until(b'"n": 0')
        leaving.send(chat(tag="leaving", model="b"))
        until(lambda: daemon.waiting() == 1, "one to wait")
        staying = pool.submit(daemon.chat, "a", tag="staying")
        until(lambda: daemon.waiting() == 2, "two to wait")
        leaving.close()
        until(lambda: daemon.waiting() == 1, "its place to be free")
        job.abort()

        assert staying.result(10).status == 200
    assert [note["tag"] for note in events(tmp_path, "arrived")] == ["", "job", "staying"]
    assert daemon.model_processes("b") == []
    (row,) = [row for row in daemon.rows(4) if row["model"] == "b"]
    assert row["resp_status_code"] == 499
    assert "while queued" in row["error_msg"]
    assert row["metadata"].keys() == {"serial_priority", "serial_band", "serial_queue_wait_ms"}


@pytest.mark.parametrize("leave", [Wire.abort, Wire.close])
def test_who_leaves_the_queue_is_missed_also_behind_more_than_is_read_ahead(
    leave: Callable[[Wire], float], daemon: Daemon, tmp_path: Path
) -> None:
    """Further requests on the connection, or a body that is longer than announced."""
    with Wire(daemon.port) as job, Wire(daemon.port) as leaving:
        job.send(chat({"tokens": 400, "gap": 0.05}, "job"))
        job.read_until(b'"n": 0')
        leaving.send(chat(tag="leaving", model="b") + b"G" * 100_000)
        until(lambda: daemon.waiting() == 1, "one to wait")
        leave(leaving)
        until(lambda: daemon.waiting() == 0, "its place to be free")
        job.abort()

    assert [note["tag"] for note in events(tmp_path, "arrived")] == ["", "job"]


def test_events_are_handed_on_when_they_arrive(daemon: Daemon) -> None:
    arrivals, lags = [], []
    with Wire(daemon.port) as wire:
        wire.send(chat({"tokens": 20, "gap": 0.05}))
        wire.read_until(b"\r\n\r\n")
        for number in range(20):
            event = wire.read_until(b"\n\n")
            now = time.monotonic()
            told = json.loads(event.partition(b"data: ")[2])
            assert told["n"] == number
            arrivals.append(now)
            lags.append(now - told["sent"])

    gaps = [after - before for before, after in pairwise(arrivals)]
    assert 0.02 < statistics.median(gaps) < 0.1
    assert statistics.median(lags) < 0.02
    assert max(lags) < 0.5


def test_case_077_continue_is_said_at_once_also_to_who_will_wait(daemon: Daemon) -> None:
    body = chat_body("b", filler="x" * 2_000_000)
    fields = {**json_fields(), "Expect": "100-continue"}
    head, _, _ = request_bytes("POST", CHAT, body, fields).partition(b"\r\n\r\n")
    with Wire(daemon.port) as job, Wire(daemon.port) as wire:
        job.send(chat({"tokens": 10, "gap": 0.1}))
        job.read_until(b'"n": 0')

        wire.send(head + b"\r\n\r\n")
        assert wire.read_until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        wire.send(body)

        until(lambda: daemon.waiting() == 1, "it to wait")
        answer, told = head_and_body(wire)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert json.loads(told)["size"] == len(body)
        assert "expect" not in json.loads(told)["headers"]


def test_a_head_request_gets_a_head_only(daemon: Daemon) -> None:
    with Wire(daemon.port) as wire:
        wire.send(request_bytes("HEAD", "/upstream/a/page") + request_bytes("HEAD", "/health"))
        wire.send(request_bytes("GET", "/health", headers={"Connection": "close"}))

        heads = wire.read_to_end().split(b"\r\n\r\n")

    assert [head.split(b"\r\n")[0] for head in heads[:3]] == [
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 200 OK",
    ]
    assert heads[3] == b"OK"


def test_case_077_an_old_client_gets_a_stream_without_chunks_and_a_close(daemon: Daemon) -> None:
    request = chat({"tokens": 3}).replace(b" HTTP/1.1\r\n", b" HTTP/1.0\r\n")
    with Wire(daemon.port) as wire:
        wire.send(request)
        head, _, body = wire.read_to_end().partition(b"\r\n\r\n")

    assert b"transfer-encoding" not in head.lower()
    assert body.startswith(b'data: {"n": 0')
    assert body.endswith(b"data: [DONE]\n\n")


def test_case_077_pipelined_requests_are_answered_in_their_order_over_one_connection(daemon: Daemon) -> None:
    with Wire(daemon.port) as wire:
        wire.send(chat({"first": 0.2}, "1") + request_bytes("GET", "/health") + chat(tag="3"))

        answers = [head_and_body(wire)[1] for _ in range(3)]
        wire.send(chat(tag="4"))
        answers.append(head_and_body(wire)[1])

    assert answers[1] == b"OK"
    assert [json.loads(answers[at])["headers"]["x-tag"] for at in (0, 2, 3)] == ["1", "3", "4"]


def test_twenty_megabytes_cross_in_both_directions(daemon: Daemon) -> None:
    body = chat_body("a", image="0123456789" * 2_000_000)

    up = ask(daemon.port, "POST", CHAT, body, json_fields())
    down = daemon.chat("a", stub={"fill": 20_000_000})

    assert up.json["sha256"] == hashlib.sha256(body).hexdigest()
    assert down.body == bytes(20_000_000)


def test_a_chunked_upload_arrives_whole(daemon: Daemon) -> None:
    body = chat_body("a")
    pieces = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (body[:9], body[9:10], body[10:]))
    with Wire(daemon.port) as wire:
        wire.send(request_bytes("POST", CHAT, headers={**json_fields(), "Transfer-Encoding": "chunked"}))
        wire.send(pieces + b"0\r\nX-Trailer: 1\r\n\r\n")

        assert json.loads(head_and_body(wire)[1])["sha256"] == hashlib.sha256(body).hexdigest()


def test_case_077_a_slow_upload_does_not_hold_the_box(daemon: Daemon) -> None:
    request = chat(tag="slow")
    with Wire(daemon.port) as slow:
        slow.send(request[:-10])
        assert daemon.chat("b").status == 200

        slow.send(request[-10:])
        assert json.loads(head_and_body(slow)[1])["headers"]["x-tag"] == "slow"


def test_a_status_page_never_waits_behind_a_job(daemon: Daemon) -> None:
    with Wire(daemon.port) as job:
        job.send(chat({"tokens": 40, "gap": 0.05}))
        job.read_until(b'"n": 0')

        page = ask(daemon.port, "GET", "/upstream/a/slots?x=%41")

        assert page.json["target"] == "/slots?x=%41"
        job.abort()
    assert daemon.total("llamaswap_scheduler_dispatched_total") == 2
