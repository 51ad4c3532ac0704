"""Cases from the field: what everybody together may cost, and who is turned away when it is more."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from support.field import Field
from support.field_call import CHAT, Call
from support.real_daemon import LLAMA_SWAP
from support.real_daemon_processes import connections, descriptors
from support.real_daemon_talk import Wire, request_bytes
from support.real_sizes import forget_peak, peak

pytestmark = pytest.mark.integration

KIB = 1024


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Field]:
    """A daemon whose limits anybody can reach."""
    limits = {"waiting": 3, "requestBody": "64KiB", "heldBodies": "160KiB", "readers": 2, "slowClient": 65536}
    with Field(tmp_path, {"A": "", "B": ""}, config={"limits": limits}) as field:
        assert field.chat("A").ok
        yield field


def reached(field: Field, limit: str) -> int:
    """How often the daemon has counted that."""
    return int(field.daemon.metrics()[f'llamaswap_limits_reached_total{{limit="{limit}"}}'])


def code(body: bytes) -> Any:
    """The code of an error in OpenAI's form."""
    return json.loads(body)["error"]["code"]


def limit_to(field: Field, **limits: Any) -> None:
    """Reload with other limits."""
    reloads = len(field.log("service.reloaded"))
    (field.folder / "config.yaml").write_text(json.dumps({**field.config, "limits": limits}))
    os.kill(field.daemon.pid, signal.SIGHUP)
    field.until(lambda: len(field.log("service.reloaded")) > reloads, "the reload")


def busy(field: Field) -> Call:
    """Let a job run that ends when its client leaves."""
    arrivals = len(field.records("arrived"))
    running = field.send("A", stub={"hang": True})
    field.until(lambda: len(field.records("arrived")) > arrivals, "its arrival")
    return running


def test_the_queue_takes_so_many_and_a_reload_lets_it_take_more(limited: Field) -> None:
    field = limited
    running = busy(field)
    waiting = [field.send("A") for _ in range(3)]
    field.until(lambda: field.daemon.waiting() == 3, "three to wait")

    refused = [field.chat("B", priority="interactive") for _ in range(2)]
    assert [(call.status, call.headers["retry-after"]) for call in refused] == [(503, "5")] * 2
    assert {call.json["error"]["code"] for call in refused} == {"queue_full"}
    assert reached(field, "waiting") == 2
    field.until(lambda: field.log("limits.reached limit=waiting most=3 refused=1"), "the line")
    assert len(field.log("limits.reached")) == 1

    limit_to(field, waiting=4)
    waiting.append(field.send("A"))
    field.until(lambda: field.daemon.waiting() == 4, "a fourth to wait")
    assert field.chat("A").status == 503
    running.leave()

    assert [call.wait().wrong() for call in waiting] == [""] * 4
    rows = [row for row in field.rows(9) if row["resp_status_code"] == 503]
    assert [row["error_msg"] for row in rows] == ["the queue is full"] * 3
    assert field.starts("B") == 0


def test_bodies_are_held_up_to_a_limit_and_one_that_finds_no_room_leaves_the_others_alone(
    limited: Field,
) -> None:
    field = limited
    large = field.chat("A", filler="x" * 64 * KIB)
    assert (large.status, code(large.body)) == (413, "request_too_large")

    running = busy(field)
    waiting = [field.send("A", filler="x" * 50 * KIB) for _ in range(3)]
    field.until(lambda: field.daemon.waiting() == 3, "three to wait")
    limit_to(field, waiting=0, requestBody="64KiB", heldBodies="160KiB")
    with Wire(field.daemon.port) as polite:
        announced = {"Content-Length": "50000", "Expect": "100-continue"}
        polite.send(request_bytes("POST", CHAT, headers=announced))
        head, _, body = polite.read_to_end().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")  # and not 100: nothing of it was sent
    assert b"Retry-After: 5\r\n" in head
    assert code(body) == "no_room_for_body"

    small = field.send("A")
    running.leave()
    assert [call.wait().wrong() for call in (*waiting, small)] == [""] * 4
    assert field.chat("A", filler="x" * 50 * KIB).ok
    assert (reached(field, "requestBody"), reached(field, "heldBodies")) == (1, 1)


def test_uploads_without_an_end_cannot_take_the_memory(limited: Field) -> None:
    field = limited
    limit_to(field, requestBody="1GiB", heldBodies="1MiB")
    before = forget_peak(field.daemon.pid)
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(field.daemon.port)) for _ in range(6)]
        for wire in wires:
            wire.send(request_bytes("POST", CHAT, headers={"Transfer-Encoding": "chunked"}))
        for wire in wires:
            for _ in range(3):  # 768 KiB of each
                with suppress(OSError):  # it has been refused meanwhile
                    wire.send(b"40000\r\n%b\r\n" % bytes(0x40000))
        field.until(lambda: reached(field, "heldBodies") == 5, "all but the first to be refused")
        assert peak(field.daemon.pid) - before < 8 * KIB * KIB
        assert field.chat("A").ok

    assert field.chat("A", filler="x" * 900 * KIB).ok


def test_events_and_logs_have_so_many_readers_and_a_place_that_is_left_is_free(limited: Field) -> None:
    field = limited
    with ExitStack() as stack:
        paths = ("/api/events", "/logs/stream")
        wires = [stack.enter_context(Wire(field.daemon.port)) for _ in paths]
        for wire, path in zip(wires, paths, strict=True):
            wire.send(request_bytes("GET", path))
            assert wire.read_until(b"\r\n").startswith(b"HTTP/1.1 200 ")

        for path in ("/api/events", "/logs/stream/A"):
            refused = field.get(path)
            assert (refused.status, code(refused.body)) == (503, "too_many_readers")
        assert reached(field, "readers") == 2
        assert field.get("/logs").status == 200

    field.until(lambda: connections(field.daemon.port) == 0, "both to be gone")
    with Wire(field.daemon.port) as later:
        later.send(request_bytes("GET", "/api/events"))
        assert later.read_until(b"\r\n").startswith(b"HTTP/1.1 200 ")


def test_connections_beyond_the_limit_wait_until_one_has_left(tmp_path: Path) -> None:
    config = {"limits": {"connections": 20}}
    with Field(tmp_path, {"A": ""}, config=config) as field:
        assert field.chat("A").ok
        # Slow enough that more than twenty are there at once, however late a client is.
        calls = [field.prepare("A", stub={"first": 0.3}) for _ in range(45)]
        field.together(calls)

        assert [call.wait().wrong() for call in calls] == [""] * 45
        field.until(lambda: field.log("doors.crowded"), "the line")
        (line,) = field.log("doors.crowded")
        assert line.endswith("why=limits.connections")
        assert reached(field, "connections") >= 1


def test_a_descriptor_above_the_limit_that_somebody_has_left_open_stops_no_start(tmp_path: Path) -> None:
    """A shell, a terminal or a supervisor leaves one open, and the limit is lowered later."""
    command = ("bash", "-c", 'exec 150</dev/null; ulimit -n 100; exec "$@"', "bash", *LLAMA_SWAP)

    with Field(tmp_path, {"A": ""}, command=command) as field:
        assert field.chat("A").ok
        (server,) = field.processes("A")
        assert descriptors(server).count(os.devnull) == 1  # its own standard input
