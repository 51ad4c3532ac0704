"""Cases from the field: rows outlive a killed daemon, and a broken disk stops nobody."""

from __future__ import annotations

import resource
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from support.field import Field
from support.field_scale import Scale
from support.real_daemon import LLAMA_SWAP

pytestmark = pytest.mark.integration

ROOM = 200  # KiB that each file may have on the full disk
FULL_DISK = ("bash", "-c", f'ulimit -S -f {ROOM}; exec "$@"', "full-disk", *LLAMA_SWAP)


def with_store(path: Path, **more: Any) -> dict[str, Any]:
    """A configuration whose rows are kept in a file."""
    return {"store": {"path": str(path)}, "logToStdout": "proxy", **more}


def folder(parent: Path, name: str) -> Path:
    """A folder for one of several daemons."""
    (path := parent / name).mkdir()
    return path


def test_case_098_a_killed_daemon_loses_no_more_than_its_last_second(tmp_path: Path, scale: Scale) -> None:
    store, count = tmp_path / "rows.db", scale(1000, 100)
    with Field(folder(tmp_path, "first"), {"A": ""}, config=with_store(store)) as field:
        ends = []
        for _ in range(count):
            call = field.chat("A")
            assert call.status == 200
            ends.append(call.client.end)
        killed = time.monotonic()
        field.daemon.process.kill()
        field.daemon.process.wait(10)

    with Field(folder(tmp_path, "second"), {"A": ""}, config=with_store(store)) as field:
        rows = field.rows()
        assert len(rows) >= sum(end < killed - 1.0 for end in ends if end is not None)
        assert len(rows) <= count
        ids = [row["id"] for row in rows]
        assert ids == list(range(1, len(rows) + 1))
        assert field.chat("A").ok
        assert field.rows(len(rows) + 1)[-1]["id"] == len(rows) + 1
        assert field.get("/api/metrics/stats").json["total_requests"] == len(rows) + 1


@pytest.mark.soak(seconds=10)
def test_case_098_a_full_disk_stops_nobody_and_its_rows_are_written_when_there_is_room(
    tmp_path: Path,
) -> None:
    config = with_store(tmp_path / "rows.db")
    with Field(tmp_path, {"A": ""}, config=config, command=FULL_DISK) as field:
        asked = 0
        while not field.log("activity.store_failed"):
            assert asked < 500, "the disk is never full"
            assert field.chat("A").ok
            asked += 1
            time.sleep(0.02)  # or all of them would be written in one go
        for _ in range(20):
            assert field.chat("A").ok
        told = field.log("store_failed")
        assert field.get("/api/metrics/activity").status in (200, 500)
        assert len(told) == 1, told

        resource.prlimit(field.daemon.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        rows = field.rows(asked + 20)
        assert len({row["id"] for row in rows}) == asked + 20


@pytest.mark.soak(seconds=5)
def test_case_098_two_daemons_may_share_one_file(tmp_path: Path) -> None:
    config = with_store(tmp_path / "rows.db")
    with (
        Field(folder(tmp_path, "one"), {"A": ""}, config=config) as one,
        Field(folder(tmp_path, "two"), {"B": ""}, config=config) as two,
    ):
        assert one.chat("A").ok
        assert two.chat("B").ok
        calls = [field.send(model) for _ in range(30) for field, model in ((one, "A"), (two, "B"))]
        assert [call.wait().wrong() for call in calls] == [""] * 60

        rows = one.rows(62)
        assert [row["model"] for row in rows].count("A") == 31
        shared = ("id", "timestamp", "model", "duration_ms", "metadata")  # captures are each daemon's own
        assert [[row[key] for key in shared] for row in two.rows(62)] == [
            [row[key] for key in shared] for row in rows
        ]


def test_case_098_a_file_that_breaks_while_it_is_used_stops_nobody(tmp_path: Path) -> None:
    store = tmp_path / "rows.db"
    with Field(tmp_path, {"A": ""}, config=with_store(store)) as field:
        assert field.chat("A").ok
        field.rows(1)
        for path in (store, Path(f"{store}-wal"), Path(f"{store}-shm")):
            if path.exists():
                path.write_bytes(b"garbage" * 3000)
        for _ in range(10):
            assert field.chat("A").ok
            time.sleep(0.02)

        field.until(lambda: field.log("activity.store_failed"), "it to be told")
        assert len(field.log("activity.store_failed")) == 1
        assert field.get("/api/metrics/activity").status == 500
        assert field.get("/metrics").status == 200


def test_case_098_a_file_that_cannot_be_used_is_told_at_the_start(tmp_path: Path) -> None:
    """As in llama-swap: an operator who wants a store shall not find out weeks later that he has none."""
    store = tmp_path / "rows.db"
    store.write_bytes(b"garbage" * 3000)
    config = tmp_path / "config.yaml"
    config.write_text(f"store: {{path: {store}}}\nmodels: {{A: {{cmd: 's ${{PORT}}'}}}}\n")
    words = [*LLAMA_SWAP, "--config", str(config), "--listen", "127.0.0.1:0"]

    ended = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)

    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert str(store) in line
