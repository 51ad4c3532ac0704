"""Large requests: they arrive whole, cost a stated amount of memory, and hold nobody else's stream up."""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.real_daemon import Daemon, started, stub_config
from support.real_daemon_talk import Wire, chat_body, json_fields, request_bytes
from support.real_sizes import MIB, SteadyStream, forget_peak, peak, resident

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"
TRANSCRIPTIONS = "/v1/audio/transcriptions"

MOST_GAP = 0.35  # seconds between two tokens that are 20 ms apart, on a machine of which others use a part


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    # Under fifo both models may run at once: one streams while the other is sent something large.
    config = stub_config(tmp_path, "a", "b")
    config["routing"]["scheduler"]["use"] = "fifo"
    config["groups"] = {"both": {"swap": False, "members": ["a", "b"]}}
    with started(tmp_path, config) as daemon:
        for model in ("a", "b"):
            assert daemon.chat(model).status == 200
        yield daemon


def told_size(wire: Wire) -> tuple[int, str]:
    """Read one answer of the stub: the size and the digest of what it was sent."""
    head = wire.read_until(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    wire.read_until(b'"size": ')
    size = int(wire.read_until(b",")[:-1])
    wire.read_until(b'"sha256": "')
    return size, wire.read_until(b'"')[:-1].decode()


def beside_a_stream(daemon: Daemon, upload: Callable[[], None]) -> tuple[int, float, float]:
    """Upload while a stream runs: bytes of memory at the peak, the largest gap, and the seconds it took."""
    before = forget_peak(daemon.pid)
    with SteadyStream(daemon.port, "a", tokens=5000, gap=0.02) as stream:
        while len(stream.arrivals) < 10:
            time.sleep(0.01)
        began = time.monotonic()
        upload()
        took = time.monotonic() - began
        time.sleep(0.2)
        assert not stream.complete
        return peak(daemon.pid) - before, stream.largest_gap(), took


def show(capsys: pytest.CaptureFixture[str], what: str, measured: tuple[int, float, float]) -> None:
    grown, gap, took = measured
    with capsys.disabled():
        sys.stdout.write(
            f"\n{what}: {took:.1f} s, {grown / MIB:.0f} MiB at the peak, "
            f"largest gap of a stream with a token each 20 ms: {1000 * gap:.0f} ms\n"
        )


def test_twenty_megabytes_of_json_pass_beside_a_stream(
    daemon: Daemon, capsys: pytest.CaptureFixture[str]
) -> None:
    body = chat_body("b", image="0123456789" * 2_000_000)
    digest = hashlib.sha256(body).hexdigest()
    request = request_bytes("POST", CHAT, body, json_fields())

    def upload() -> None:
        with Wire(daemon.port) as wire:
            wire.send(request)
            assert told_size(wire) == (len(body), digest)

    measured = beside_a_stream(daemon, upload)

    show(capsys, "20 MB of JSON", measured)
    assert measured[0] < 5 * len(body)
    assert measured[1] < MOST_GAP


BLOCK = bytes(range(256)) * 4096
BLOCKS = 200

START = (
    b'--frontier\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n'
    b"Content-Type: audio/wav\r\n\r\n"
)
END = b'\r\n--frontier\r\nContent-Disposition: form-data; name="model"\r\n\r\nb\r\n--frontier--\r\n'


def send_form(wire: Wire) -> tuple[int, str]:
    """Send a form of 200 MiB, a block at a time; returns its size and its digest."""
    size = len(START) + BLOCKS * len(BLOCK) + len(END)
    fields = {"Content-Type": "multipart/form-data; boundary=frontier", "Content-Length": str(size)}
    wire.send(request_bytes("POST", TRANSCRIPTIONS, headers=fields))
    digest = hashlib.sha256()
    for part in (START, *[BLOCK] * BLOCKS, END):
        digest.update(part)
        wire.send(part)
    return size, digest.hexdigest()


def test_two_hundred_megabytes_of_a_form_pass_beside_a_stream_and_are_let_go_again(
    daemon: Daemon, capsys: pytest.CaptureFixture[str]
) -> None:
    before = resident(daemon.pid)

    def upload() -> None:
        with Wire(daemon.port) as wire:
            sent = send_form(wire)
            assert told_size(wire) == sent

    measured = beside_a_stream(daemon, upload)

    show(capsys, "200 MiB of a form", measured)
    assert measured[0] < 2.3 * BLOCKS * MIB
    assert measured[1] < 3 * MOST_GAP
    assert resident(daemon.pid) - before < 40 * MIB


LARGE = 60_000_000


def test_a_large_answer_to_a_slow_reader_costs_no_more_than_what_is_kept_for_it(daemon: Daemon) -> None:
    before = forget_peak(daemon.pid)
    with Wire(daemon.port) as slow:
        fields = json_fields(stub={"fill": LARGE})
        slow.send(request_bytes("POST", CHAT, chat_body("b"), fields))
        slow.read_until(b"\r\n\r\n")
        time.sleep(0.5)
        assert len(daemon.rows()) == 2, "its upstream is held back"
        assert peak(daemon.pid) - before < 20 * MIB
        assert sum(len(slow.read_exactly(LARGE // 60)) for _ in range(60)) == LARGE


def test_ten_large_uploads_at_once_all_arrive(daemon: Daemon) -> None:
    body = chat_body("b", image="0123456789" * 300_000)
    digest = hashlib.sha256(body).hexdigest()
    arrived: list[tuple[int, str]] = []

    def upload() -> None:
        with Wire(daemon.port) as wire:
            wire.send(request_bytes("POST", CHAT, body, json_fields()))
            arrived.append(told_size(wire))

    threads = [threading.Thread(target=upload) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert arrived == [(len(body), digest)] * 10
