"""Which format a trace has, and its records one after the other.

Looks into files, compressed ones included, and never holds more than a line of one.  What a line means is
its format's business, what is done about a bad one its caller's.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, cast

from llamaswap.simulation import arrivals_csv, azure, burstgpt, mooncake, stored
from llamaswap.simulation.records import BadLine, Record, Unusable


class Format(StrEnum):
    """The formats that are known."""

    ARRIVALS = "arrivals"
    AZURE = "azure"
    BURSTGPT = "burstgpt"
    MOONCAKE = "mooncake"
    STORE = "store"


RowReader = Callable[[Sequence[str]], Record]

TABLES = {
    Format.ARRIVALS: (arrivals_csv.TITLES, arrivals_csv.reader),
    Format.AZURE: (azure.TITLES, azure.reader),
    Format.BURSTGPT: (burstgpt.TITLES, burstgpt.reader),
}
"""Formats that are CSV: the titles that tell them, and what makes a row's reader."""

_SQLITE = b"SQLite format 3\0"
_GZIP = b"\x1f\x8b"
_LONGEST_LINE = 1 << 20  # of a title or an object that is looked at to tell a format


@dataclass(frozen=True, slots=True)
class Trace:
    """One file to replay."""

    path: Path
    label: str  # what mappings call it
    format: Format


def open_trace(words: str) -> Trace:
    """Find out what a file holds.

    Args:
        words: its path, or `label=path`; without a label it is called by its name up to the first dot.

    Raises:
        Unusable: it can't be read, or has none of the known formats.
    """
    label, equals, rest = words.partition("=")
    named = bool(equals) and not Path(words).exists()
    path = Path(rest if named else words)
    return Trace(path, label if named else path.name.partition(".")[0], detect(path))


def detect(path: Path) -> Format:
    """Return the format of a file; Unusable as for `open_trace`."""
    try:
        with _open(path) as file:
            start = file.readline(_LONGEST_LINE)
            if start.startswith(_SQLITE):
                return Format.STORE
            while start.isspace():
                start = file.readline(_LONGEST_LINE)
    except (OSError, EOFError) as error:
        raise Unusable(f"{path}: {error.strerror if isinstance(error, OSError) else error}") from error
    if start.lstrip().startswith(b"{"):
        return Format.MOONCAKE
    titles = _titles(next(csv.reader([start.decode("utf-8-sig", "replace")]), []))
    for format_, (_, reader) in TABLES.items():
        if reader(titles) is not None:
            return format_
    known = "; ".join(f"{name} ({','.join(told)})" for name, (told, _) in TABLES.items())
    raise Unusable(f"{path}:1: no trace of a known format: {known}; mooncake (JSON lines); store (SQLite)")


def records(trace: Trace, bad: Callable[[str], None]) -> Iterator[Record]:
    """Yield a trace's records in the order of the file; those of a store in the order of arrival.

    Args:
        bad: is told of each line that makes no sense, `file:line: why`; it raises, or the line is left out.

    Raises:
        Unusable: the file can't be read to its end.
    """
    try:
        if trace.format is Format.STORE:
            yield from stored.records(trace.path)
            return
        with _open(trace.path) as file:
            read = _objects if trace.format is Format.MOONCAKE else _rows
            yield from read(trace, file, bad)
    except (OSError, EOFError) as error:
        raise Unusable(f"{trace.path}: {error}") from error


def refuse(what: str) -> None:
    """Be told of a bad line, and put up with none.

    Raises:
        Unusable: always.
    """
    raise Unusable(f"{what}; with --skip-bad such lines are left out")


def _objects(trace: Trace, file: BinaryIO, bad: Callable[[str], None]) -> Iterator[Record]:
    for line, text in enumerate(file, 1):
        if text.isspace():
            continue
        try:
            yield mooncake.record_of(text)
        except BadLine as why:
            bad(f"{trace.path}:{line}: {why}")


def _rows(trace: Trace, file: BinaryIO, bad: Callable[[str], None]) -> Iterator[Record]:
    with io.TextIOWrapper(file, "utf-8-sig", "replace", newline="") as text:
        table = csv.reader(text)
        titles = _titles(next((row for row in table if row), []))
        _, make = TABLES[trace.format]
        record = make(titles)
        assert record is not None  # `detect` has seen these titles
        while True:
            before = table.line_num
            try:
                row = next(table, None)
                if row is None:
                    return
                if row:
                    yield _record(record, row, len(titles))
            except (BadLine, csv.Error) as why:
                # A row may span lines; the first is where a person looks.
                bad(f"{trace.path}:{before + 1}: {why}")


def _record(read: RowReader, row: Sequence[str], columns: int) -> Record:
    if len(row) < columns:
        raise BadLine(f"expected {columns} columns, got {len(row)}")
    return read(row)


def _titles(row: Sequence[str]) -> tuple[str, ...]:
    return tuple(title.strip() for title in row)


def _open(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    return cast("BinaryIO", gzip.open(path, "rb")) if packed else path.open("rb")
