"""Open an activity database and bring its tables up to date.

Knows files, journal modes and schema versions; does not know what the rows mean.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Final

BUSY: Final = 5.0  # seconds to wait for another process's lock

_COLUMNS: Final = frozenset(
    {
        "id",
        "ts_created",
        "model_id",
        "req_path",
        "resp_content_type",
        "resp_status_code",
        "cache_tokens",
        "draft_tokens",
        "draft_acc_tokens",
        "input_tokens",
        "output_tokens",
        "prompt_per_second",
        "tokens_per_second",
        "duration_ms",
        "error_msg",
        "metadata_json",
    }
)


_TABLES: Final = frozenset({"activity", "goose_db_version"})  # llama-swap makes the second one first


class StoreUnusable(Exception):
    """The database cannot be used; an operator has to look at the file."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
        self.why = why


def open_database(path: str | None) -> sqlite3.Connection:
    """Open a file, or an empty database in memory for None, with its tables ready.

    The connection may be used from any thread, but from one at a time.

    Raises:
        StoreUnusable: not a database, not writable, of a later version, or no place for a write-ahead log.
    """
    name = path if path is not None else "the database in memory"
    try:
        if path is not None and path != ":memory:":  # SQLite's own name for no file
            _create_for_owner(path)
        # The directory is the operator's: a mistyped path must not make one.
        connection = sqlite3.connect(
            path if path is not None else ":memory:",
            timeout=BUSY,
            isolation_level=None,
            check_same_thread=False,
        )
    except OSError as error:
        raise StoreUnusable(name, f"unable to open database file: {error.strerror}") from error
    except sqlite3.Error as error:
        raise StoreUnusable(name, str(error)) from error
    try:
        _prepare(connection, name, in_memory=path is None)
    except sqlite3.Error as error:
        connection.close()
        raise StoreUnusable(name, f"{error}{_hint(path)}") from error
    except StoreUnusable:
        connection.close()
        raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """Commit what the block did, or undo it all when it raises."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk has sometimes rolled back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _hint(path: str | None) -> str:
    """Why a file that may be written can't be: SQLite says that of the file only."""
    folder = Path(path or ".").absolute().parent
    if path is None or os.access(folder, os.W_OK):
        return ""
    return f" ({str(folder)!r} is not writable, and the database keeps its log there)"


def _create_for_owner(path: str) -> None:
    """Make the file before SQLite does: it, and the logs beside it, are nobody else's to read."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _prepare(connection: sqlite3.Connection, name: str, *, in_memory: bool) -> None:
    if not in_memory:
        # First: what is not ours is to stay as it is, the mode of its journal included.
        _refuse_strangers(connection, name)
        _keep_write_ahead_log(connection, name)
    _migrate(connection, name)
    present = {column[1] for column in connection.execute("PRAGMA table_info(activity)")}
    if missing := _COLUMNS - present:
        raise StoreUnusable(name, f"its table activity lacks {', '.join(sorted(missing))}")


def _refuse_strangers(connection: sqlite3.Connection, name: str) -> None:
    named = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    tables = {table for (table,) in named if not table.startswith("sqlite_")}
    if tables and not tables & _TABLES:
        raise StoreUnusable(name, "another program's database: it has tables, but no activity")
    _refuse_later_versions(_version(connection), name)


def _refuse_later_versions(version: int, name: str) -> None:
    known = len(_scripts())
    if version > known:
        raise StoreUnusable(name, f"written by a later version (schema {version}, known {known})")


def _keep_write_ahead_log(connection: sqlite3.Connection, name: str) -> None:
    # Readers then never wait for the writer, and a killed process loses nothing that was committed.
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreUnusable(name, f"cannot keep a write-ahead log (journal mode is {mode})")
    connection.execute("PRAGMA synchronous = NORMAL")


def _migrate(connection: sqlite3.Connection, name: str) -> None:
    scripts = _scripts()
    if _version(connection) == len(scripts):
        return
    with transaction(connection):
        # Another process may have been faster.
        version = _version(connection)
        _refuse_later_versions(version, name)
        for script in scripts[version:]:
            for statement in _statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(scripts)}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _scripts() -> list[str]:
    folder = files("llamaswap.activity") / "schema"
    named = sorted(
        (script for script in folder.iterdir() if script.name.endswith(".sql")), key=lambda s: s.name
    )
    return [script.read_text("utf-8") for script in named]


def _statements(script: str) -> Iterator[str]:
    """Split a script, because sqlite3's own runner would end our transaction first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
