"""The upstream and the clients that are written in C, against each other and against a liar."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import bench.native
from bench.launching import Failed
from bench.native import Load, Upstream, load_abort, load_json, load_sse

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
]


@pytest.fixture(scope="module", autouse=True)
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench.native, "BUILT", tmp_path_factory.mktemp("built"))
        yield


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


def test_every_request_is_answered_and_seen(upstream: Upstream) -> None:
    upstream.records()

    spread = load_json(upstream.port, clients=4, requests=40, body=1000, answer=500)

    seen = upstream.records()
    assert (spread.count, spread.reconnects) == (40, 0)
    assert 0 < spread.low <= spread.p50 <= spread.p99 <= spread.high < spread.seconds
    assert (seen.jobs, seen.body_bytes, seen.connections) == (40, 40_000, 5)


def test_a_gap_is_seen_between_jobs_that_come_one_by_one(upstream: Upstream) -> None:
    upstream.records()

    load_json(upstream.port, requests=10, delay_us=1000)

    seen = upstream.records()
    assert (seen.overlaps, len(seen.gaps)) == (0, 9)
    assert all(0 < gap < 1 for gap in seen.gaps)


def test_jobs_that_run_at_once_are_told_apart(upstream: Upstream) -> None:
    upstream.records()

    load_json(upstream.port, clients=2, requests=2, delay_us=50_000)

    assert upstream.records().overlaps == 1


def test_every_chunk_of_every_stream_is_timed(upstream: Upstream) -> None:
    upstream.records()

    spread = load_sse(upstream.port, streams=3, count=20, rate=500)

    assert (spread.count, upstream.records().chunks) == (60, 60)
    assert 0 < spread.low <= spread.p50 < 1


def test_a_stream_that_was_left_is_noticed_after_it_was(upstream: Upstream) -> None:
    upstream.records()

    left = load_abort(upstream.port, requests=2, rate=200)

    noticed: dict[int, float] = {}
    until = time.monotonic() + 10
    while len(noticed) < 2 and time.monotonic() < until:
        noticed |= upstream.records().aborts
    assert noticed.keys() == left.keys() == {0, 1}
    assert all(noticed[number] > left[number] for number in left)


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """Answer one request with these bytes, and close; yields the port."""

    def serve() -> None:
        connection = server.accept()[0]
        with connection:
            connection.recv(65536)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


# 31 bytes.
EVENTS = b'data: {"t":"1"}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize(
    ("mode", "answer", "complaint"),
    [
        ("json", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "5 bytes instead of 300"),
        ("json", b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "status 503 instead of 200"),
        ("json", b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\nhel", "closed before the end"),
        ("json", b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n" + bytes(301), "1 bytes after the end"),
        ("json", b"HTTP/1.1 200 OK\r\n\r\nhello", "without a length"),
        (
            "sse",
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(EVENTS), EVENTS),
            "1 chunks instead of 2",
        ),
        ("sse", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "0 chunks instead of 2"),
    ],
)
def test_an_answer_that_is_not_as_it_should_be_ends_the_run(
    mode: str, answer: bytes, complaint: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with (
        answering(answer) as port,
        Load(mode, port, requests=1, count=2, limit=10) as load,
        pytest.raises(Failed, match="ended with 1"),
    ):
        load.spread()

    assert complaint in capfd.readouterr().err


def test_what_is_built_is_kept_until_a_source_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.native, "BUILT", tmp_path)
    bench.native.build()
    first = (tmp_path / "load").stat().st_mtime_ns

    bench.native.build()

    assert (tmp_path / "load").stat().st_mtime_ns == first
