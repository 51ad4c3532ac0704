from __future__ import annotations

from pathlib import Path

from llamaswap.telemetry.files import list_folder, read_number, read_text


def test_a_file_is_read_without_its_blanks(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("  one\n")

    assert read_text(tmp_path / "f") == "one"


def test_what_says_nothing_is_none(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")

    assert read_text(tmp_path / "empty") is None
    assert read_text(tmp_path / "absent") is None
    assert read_text(tmp_path) is None
    assert read_number(tmp_path / "bytes") is None


def test_only_a_whole_number_is_a_number(tmp_path: Path) -> None:
    for text, number in (("-7\n", -7), ("N/A", None), ("0x1002", None), ("max", None)):
        (tmp_path / "f").write_text(text)
        assert read_number(tmp_path / "f") == number


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")

    assert list_folder(tmp_path) == [tmp_path / "f"]
    assert list_folder(tmp_path / "absent") == []
