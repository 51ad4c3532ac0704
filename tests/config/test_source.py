"""Files and directories."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamaswap.config.mistakes import Report
from llamaswap.config.source import LARGEST_FILE, read_sources, store_trouble
from support.config_checks import lines


def read(config: Path | None, config_dir: Path | None) -> tuple[list[str], list[str]]:
    """The names of what was read, and the complaints."""
    report = Report()
    sources = read_sources(config, config_dir, report)
    return [Path(source.file).name for source in sources], lines(report)


def test_the_file_comes_first_and_the_directory_in_byte_order(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    for name in ("b.yml", "a.yaml", "B.yaml", ".yaml", "c.YAML", "d.txt"):
        (folder / name).write_text("a: 1")
    (folder / "sub.yaml").mkdir()
    main = tmp_path / "z.cfg"
    main.write_text("")
    assert read(main, folder) == (["z.cfg", ".yaml", "B.yaml", "a.yaml", "b.yml"], [])


def test_nothing_to_load_is_a_mistake(tmp_path: Path) -> None:
    assert "nothing to load: name a file with --config" in read(None, None)[1][0]
    assert f"{tmp_path}:1:1: nothing to load: there is no *.yml" in read(None, tmp_path)[1][0]


def test_what_cannot_be_read_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("x: 1")
    (tmp_path / "b.yaml").symlink_to(tmp_path / "gone")
    names, complaints = read(tmp_path / "missing.yaml", tmp_path)
    assert names == ["a.yaml"]
    assert complaints == [
        f"{tmp_path}/missing.yaml:1:1: can't read this file: No such file or directory",
        f"{tmp_path}/b.yaml:1:1: can't read this file: No such file or directory",
    ]


def test_a_missing_directory_is_reported(tmp_path: Path) -> None:
    assert "can't read this directory" in read(None, tmp_path / "no")[1][0]


def test_a_file_given_twice_is_reported_however_it_is_spelt(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("x: 1")
    assert "given twice" in read(tmp_path / "x" / ".." / "a.yaml", tmp_path)[1][0]


def test_bytes_that_are_no_utf_8_are_reported_at_their_place(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes("x: 1\nä: ".encode() + b"\xff")
    assert read(file, None)[1] == [f"{file}:2:4: is not UTF-8 text here"]


def test_a_file_that_is_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    with file.open("wb") as written:
        written.truncate(LARGEST_FILE + 1)
    assert "larger than" in read(file, None)[1][0]


@pytest.mark.parametrize(
    ("path", "trouble"),
    [("new.db", None), ("old.db", None), (".", "is a directory"), ("/dev/null", "is no regular file")],
)
def test_a_store_needs_a_place_to_live(
    path: str, trouble: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.db").write_text("")
    have = store_trouble(path)
    assert have is None if trouble is None else trouble in str(have)
    assert "is no directory" in str(store_trouble("no/such/x.db"))


def test_the_lock_of_an_editor_is_no_file_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("logLevel: debug")
    (tmp_path / ".#a.yaml").symlink_to("ada@box.7:1")
    (tmp_path / ".#b.yaml").write_text("logTimeFormat: stamp")

    assert read(None, tmp_path) == ([".#b.yaml", "a.yaml"], [])
