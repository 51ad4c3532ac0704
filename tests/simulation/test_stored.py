"""The daemon's own store as a trace."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from llamaswap.metering.usage import Usage
from llamaswap.simulation.records import Unusable
from llamaswap.simulation.stored import measure, records
from support.traces import dispatched, row, store


def test_a_request_arrived_as_long_ago_as_it_lasted_and_ran_for_what_was_not_waiting(tmp_path: Path) -> None:
    path = store(tmp_path / "a.db", [dispatched(1000, "chat", 30, waited=12, load=8, priority=100)])

    (record,) = records(path)

    assert (record.at, record.model, record.priority, record.run) == (970.0, "chat", 100, 10.0)
    assert record.cancel_after is None


def test_records_come_in_the_order_of_arrival(tmp_path: Path) -> None:
    late, early = dispatched(1000, "chat", 5, 0, 0), dispatched(1010, "painter", 60, 0, 0)

    assert [one.model for one in records(store(tmp_path / "a.db", [late, early]))] == ["painter", "chat"]


def test_who_left_the_queue_leaves_it_again_and_would_have_run_as_others_do(tmp_path: Path) -> None:
    left = row(1020, "chat", 20, status=499, serial_priority=100, serial_queue_wait_ms=20_000)
    unknown = row(1020, "nobody", 20, status=499, serial_priority=100, serial_queue_wait_ms=20_000)
    rows = [dispatched(1000 + n, "chat", run, 0, 0) for n, run in enumerate((1, 5, 9))]

    *_, record = records(store(tmp_path / "a.db", [*rows, left, unknown]))

    assert (record.at, record.run, record.cancel_after) == (1000.0, 5.0, 20.0)


def test_who_was_refused_in_the_queue_would_have_stayed(tmp_path: Path) -> None:
    refused = row(1020, "chat", 20, status=503, serial_priority=0, serial_queue_wait_ms=20_000)

    records_ = list(records(store(tmp_path / "a.db", [dispatched(1000, "chat", 5, 0, 0), refused])))

    assert [one.cancel_after for one in records_] == [None, None]


def test_rows_that_took_no_turn_are_left_out(tmp_path: Path) -> None:
    peer = row(1001, "far", 3)
    noted = row(1002, "chat", 3, reason="x")

    assert len(list(records(store(tmp_path / "a.db", [dispatched(1000, "chat", 5, 0, 0), peer, noted])))) == 1


def test_under_fifo_the_upstream_knows_how_long_it_ran(tmp_path: Path) -> None:
    told = Usage(input_tokens=500, output_tokens=100, prompt_per_second=250.0, tokens_per_second=50.0)
    rows = [row(1000, "chat", 30, usage=told, fifo_priority=-90), row(1001, "chat", 6, fifo_priority=0)]

    assert [(one.priority, one.run) for one in records(store(tmp_path / "a.db", rows))] == [
        (-90, 4.0),
        (0, 6.0),
    ]


def test_in_a_store_without_metadata_every_good_answer_is_a_request(tmp_path: Path) -> None:
    path = store(tmp_path / "a.db", [row(1000, "chat", 5), row(1001, "chat", 1, status=404)])

    assert [(one.priority, one.run) for one in records(path)] == [(0, 5.0)]


def test_metadata_that_makes_no_sense_is_none(tmp_path: Path) -> None:
    path = store(tmp_path / "a.db", [dispatched(1000, "chat", 5, 0, 0), dispatched(1001, "chat", 5, 0, 0)])
    with sqlite3.connect(path) as database:
        database.execute("UPDATE activity SET metadata_json = '{\"serial_priority\"' WHERE id = 1")
        database.execute(
            "UPDATE activity SET metadata_json = replace(metadata_json, '\"0\"', '\"soon\"') WHERE id = 2"
        )
    database.close()

    assert [(one.priority, one.run) for one in records(path)] == [(0, 5.0)]


def test_loads_runs_and_speeds_are_medians_of_good_answers(tmp_path: Path) -> None:
    told = Usage(input_tokens=500, output_tokens=100, prompt_per_second=250.0, tokens_per_second=50.0)
    rows = [dispatched(1000, "chat", 20 + load, waited=10, load=load) for load in (0, 0, 6, 8, 20)]
    rows += [row(1000, "chat", 1, usage=told, serial_priority=0, serial_score="1")]
    rows += [dispatched(1000, "broken", 99, 0, 99)]

    measured = measure(store(tmp_path / "a.db", [*rows, row(1000, "bad", 9, status=500, serial_priority=0)]))

    assert (measured.load["chat"], measured.run["chat"]) == (8.0, 10.0)
    assert (measured.prefill, measured.decode) == ({"chat": 250.0}, {"chat": 50.0})
    assert "bad" not in measured.run


def test_the_store_is_only_read(tmp_path: Path) -> None:
    folder = tmp_path / "a#b?c d"
    folder.mkdir()
    path = store(folder / "a.db", [dispatched(1000, "chat", 5, 0, 0)])
    before = path.read_bytes()

    list(records(path))

    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [None, b"", b"SQLite format 3\0nonsense"])
def test_what_is_no_store_is_refused_and_not_made(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "a.db"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(Unusable, match=r"a\.db: no activity store that can be read"):
        list(records(path))

    assert path.exists() == (content is not None)
