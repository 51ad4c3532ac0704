"""The files that a stub leaves."""

from __future__ import annotations

import json
import os
from pathlib import Path

from llamaswap.stub.records import Record, count_start, note_words


def test_stubs_that_share_a_record_write_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "record"
    one, other = Record(str(path), "a"), Record(str(path), "b")

    one.note("arrived", path="/x")
    other.note("arrived", path="/y")
    one.note("request", left=True)

    notes = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(note["alias"], note["event"]) for note in notes] == [
        ("a", "arrived"),
        ("b", "arrived"),
        ("a", "request"),
    ]
    assert notes[2]["left"] is True
    assert {note["pid"] for note in notes} == {os.getpid()}
    assert notes[0]["at"] <= notes[2]["at"]


def test_without_a_file_nothing_is_noted() -> None:
    Record(None, "a").note("arrived")


def test_starts_are_counted_in_their_file(tmp_path: Path) -> None:
    counter = str(tmp_path / "starts")

    assert [count_start(counter) for _ in range(11)] == list(range(1, 12))
    assert count_start(None) == 1


def test_command_lines_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "argv"

    note_words(str(path), ["--x", 'a "b"'])
    note_words(str(path), [])

    assert [json.loads(line) for line in path.read_text().splitlines()] == [["--x", 'a "b"'], []]
