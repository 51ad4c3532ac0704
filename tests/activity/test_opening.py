from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from llamaswap.activity.opening import StoreUnusable, open_database, transaction

OPEN_IT = (
    "import sys; from llamaswap.activity.opening import open_database; open_database(sys.argv[1]).close()"
)


def ask(path: Path, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def run(path: Path, script: str) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()


def test_a_new_file_has_the_layout_that_llama_swap_expects(tmp_path: Path) -> None:
    path = tmp_path / "activity.db"
    open_database(str(path)).close()

    columns = [
        (name, kind, notnull) for _, name, kind, notnull, *_ in ask(path, "PRAGMA table_info(activity)")
    ]
    assert columns[:3] == [("id", "INTEGER", 0), ("ts_created", "INTEGER", 1), ("model_id", "TEXT", 1)]
    assert len(columns) == 16
    assert ask(path, "SELECT version_id, is_applied FROM goose_db_version ORDER BY id") == [(0, 1), (1, 1)]
    assert ask(path, "PRAGMA user_version") == [(1,)]
    assert ask(path, "PRAGMA journal_mode") == [("wal",)]


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "activity.db"
    open_database(str(path)).close()
    before = ask(path, "SELECT * FROM sqlite_schema"), ask(path, "SELECT * FROM goose_db_version")
    open_database(str(path)).close()
    assert (ask(path, "SELECT * FROM sqlite_schema"), ask(path, "SELECT * FROM goose_db_version")) == before


def test_a_file_that_llama_swap_made_keeps_its_rows_and_its_bookkeeping(tmp_path: Path) -> None:
    path = tmp_path / "activity.db"
    open_database(str(path)).close()
    # As another program leaves it: the same tables, its own names of indexes, no version of ours.
    run(
        path,
        "PRAGMA user_version = 0; DROP INDEX activity_by_time; CREATE INDEX other ON activity (ts_created);"
        "INSERT INTO activity (ts_created, model_id) VALUES (1, 'm1');"
        "UPDATE goose_db_version SET tstamp = '2026-01-01 00:00:00';",
    )

    open_database(str(path)).close()

    assert ask(path, "SELECT model_id, error_msg FROM activity") == [("m1", "")]
    assert ask(path, "SELECT version_id, tstamp FROM goose_db_version ORDER BY id") == [
        (0, "2026-01-01 00:00:00"),
        (1, "2026-01-01 00:00:00"),
    ]


def test_a_database_in_memory_is_ready_and_private() -> None:
    first, second = open_database(None), open_database(None)
    try:
        first.execute("INSERT INTO activity (ts_created, model_id) VALUES (1, 'm')")
        assert second.execute("SELECT count(*) FROM activity").fetchone() == (0,)
    finally:
        first.close()
        second.close()


def test_a_file_that_is_no_database_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "activity.db"
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreUnusable, match="not a database") as refusal:
        open_database(str(path))
    assert refusal.value.path == str(path)
    assert str(refusal.value) == f"{path}: {refusal.value.why}"
    assert path.read_bytes() == b"not a database at all" * 100


def test_a_path_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing" / "activity.db"):
        with pytest.raises(StoreUnusable, match="unable to open"):
            open_database(str(path))
    assert not (tmp_path / "missing").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_file_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "activity.db"
    path.touch(mode=0o400)
    with pytest.raises(StoreUnusable, match="readonly"):
        open_database(str(path))


def test_a_place_without_room_for_a_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "activity.db"
    (tmp_path / "activity.db-wal").mkdir()
    with pytest.raises(StoreUnusable):
        open_database(str(path))


def test_a_database_without_write_ahead_log_is_refused() -> None:
    with pytest.raises(StoreUnusable, match="write-ahead log"):
        open_database(":memory:")


def test_a_file_of_a_later_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "activity.db"
    open_database(str(path)).close()
    run(path, "PRAGMA user_version = 99")
    with pytest.raises(StoreUnusable, match="later version"):
        open_database(str(path))
    assert ask(path, "PRAGMA user_version") == [(99,)]


@pytest.mark.parametrize("version", [0, 1, 99])
def test_the_database_of_another_program_is_refused_and_left_alone(tmp_path: Path, version: int) -> None:
    path = tmp_path / "places.db"
    run(path, f"CREATE TABLE bookmarks (url TEXT); PRAGMA user_version = {version}")
    before = path.read_bytes()

    with pytest.raises(StoreUnusable, match="another program's database"):
        open_database(str(path))

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_without_room_for_a_log_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "activity.db"
    path.touch()
    (tmp_path / "activity.db-wal").mkdir()  # as root may write everywhere
    monkeypatch.setattr(os, "access", lambda *_: False)

    with pytest.raises(StoreUnusable, match=f"'{tmp_path}' is not writable"):
        open_database(str(path))


def test_a_table_of_the_same_name_with_other_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "activity.db"
    open_database(str(path)).close()
    run(path, "ALTER TABLE activity DROP COLUMN error_msg")
    with pytest.raises(StoreUnusable, match="lacks error_msg"):
        open_database(str(path))


def test_several_processes_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "activity.db"
    children = [
        subprocess.Popen([sys.executable, "-c", OPEN_IT, str(path)], stderr=subprocess.PIPE) for _ in range(3)
    ]
    problems = [child.communicate(timeout=30)[1] for child in children]
    assert problems == [b"", b"", b""]
    assert ask(path, "SELECT version_id FROM goose_db_version ORDER BY id") == [(0,), (1,)]


def test_a_transaction_that_fails_leaves_nothing() -> None:
    connection = open_database(None)
    try:
        with pytest.raises(sqlite3.IntegrityError), transaction(connection):
            connection.executemany(
                "INSERT INTO activity (ts_created, model_id) VALUES (?, 'm')", [(1,), (None,)]
            )
        assert connection.execute("SELECT count(*) FROM activity").fetchone() == (0,)
        assert not connection.in_transaction
    finally:
        connection.close()
