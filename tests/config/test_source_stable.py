"""Reading files that somebody may be writing."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from llamaswap.config import source
from llamaswap.config.load import ConfigRejected, ConfigUnstable, load, load_stable
from llamaswap.config.mistakes import Report
from llamaswap.config.source import STABLE_TRIES, Signature, Source, look_at_sources

MODEL = "models: {m: {cmd: s, proxy: 'http://h'}}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A configuration of one model."""
    path = tmp_path / "config.yaml"
    path.write_text(MODEL)
    return path


def disturbed(monkeypatch: pytest.MonkeyPatch, disturb: Callable[[int], object]) -> list[int]:
    """Let something happen at the end of each reading; the list grows with every one."""
    read, rounds = source.read_sources, list[int]()

    def reading(config: Path | None, config_dir: Path | None, report: Report) -> list[Source]:
        found = read(config, config_dir, report)
        rounds.append(len(rounds))
        disturb(len(rounds))
        return found

    monkeypatch.setattr(source, "read_sources", reading)
    return rounds


def test_a_file_that_rests_is_read_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = disturbed(monkeypatch, lambda turn: None)

    assert list(load_stable(file, None, {}).models) == ["m"]
    assert len(rounds) == 1


def test_a_file_that_changes_while_it_is_read_is_read_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disturbed(monkeypatch, lambda turn: turn == 1 and file.write_text(MODEL + "logLevel: debug\n"))

    assert load_stable(file, None, {}).log_level == "debug"


def test_complaints_about_an_unstable_reading_are_forgotten(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_bytes(b"\xff")
    disturbed(monkeypatch, lambda turn: turn == 1 and file.write_text(MODEL))

    assert list(load_stable(file, None, {}).models) == ["m"]


def test_a_file_that_never_rests_is_given_up_after_a_few_tries(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = disturbed(monkeypatch, lambda turn: file.write_text(MODEL + "#" * turn))

    with pytest.raises(ConfigUnstable, match=f"^{file}:1:1: changes while it is read$"):
        load_stable(file, None, {})
    assert len(rounds) == STABLE_TRIES


def test_a_file_that_joins_the_directory_is_not_missed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = file.with_name("late.yml")
    disturbed(monkeypatch, lambda turn: late.write_text("logLevel: debug"))

    with pytest.raises(ConfigUnstable):
        load_stable(None, file.parent, {})
    monkeypatch.undo()
    assert load_stable(None, file.parent, {}).log_level == "debug"


@pytest.mark.parametrize("nothing", [b"", b" \n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_fine_at_the_start_and_changes_nothing_later(file: Path, nothing: bytes) -> None:
    file.write_bytes(nothing)

    assert load(file, None, {}).models == {}
    with pytest.raises(ConfigUnstable, match="is empty"):
        load_stable(file, None, {})
    with pytest.raises(ConfigUnstable, match=f"^{file}:1:1: is empty"):
        load_stable(None, file.parent, {})


def test_a_comment_makes_an_empty_file_welcome(file: Path) -> None:
    file.write_text("# nothing yet\n")

    assert load_stable(file, None, {}).models == {}


def test_mistakes_in_a_file_that_rests_are_no_instability(file: Path) -> None:
    file.write_text("models: [")

    with pytest.raises(ConfigRejected) as refusal:
        load_stable(file, None, {})
    assert not isinstance(refusal.value, ConfigUnstable)
    with pytest.raises(ConfigRejected, match="can't read this file"):
        load_stable(file.with_name("gone.yaml"), None, {})
    with pytest.raises(ConfigRejected, match="can't read this directory"):
        load_stable(None, file.with_name("gone"), {})


def test_a_look_sees_what_is_written_replaced_added_and_removed(file: Path) -> None:
    folder = file.parent
    looks = [look_at_sources(file, folder)]

    def happened() -> None:
        looks.append(look_at_sources(file, folder))

    os.utime(file, ns=(1, 1))
    happened()
    file.write_text("# longer")
    os.utime(file, ns=(1, 1))
    happened()
    other = folder / "new"
    other.write_text("# longer")
    os.utime(other, ns=(1, 1))
    other.replace(file)
    happened()
    (folder / "b.yml").symlink_to("target")
    happened()
    (folder / "target").write_text("x")
    happened()
    file.unlink()
    happened()

    assert len(set(looks)) == len(looks)


def test_a_look_goes_past_what_does_not_matter(file: Path) -> None:
    look = look_at_sources(file, file.parent)

    (file.parent / "notes.txt").write_text("x")
    (file.parent / "sub.yaml").mkdir()
    file.read_text()

    assert look_at_sources(file, file.parent) == look


def test_a_look_at_nothing_is_no_error(tmp_path: Path) -> None:
    assert look_at_sources(None, None) == Signature()
    assert look_at_sources(tmp_path / "no", tmp_path / "nowhere") == Signature()
    assert look_at_sources(Path("\0"), Path("\0")) == Signature()


def test_a_pipe_is_read_at_the_start_and_never_waited_for_by_whoever_has_a_configuration(
    tmp_path: Path,
) -> None:
    """Such as that of `--config <(...)`: nobody writes to it any more."""
    pipe = tmp_path / "config.yaml"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("healthCheckTimeout: 77",))
    writer.start()
    assert load(pipe, None, {}).health_check_timeout == 77
    writer.join()

    signal.alarm(5)  # reading it would not end
    try:
        for config, folder in ((pipe, None), (None, tmp_path)):
            with pytest.raises(ConfigRejected, match="is no regular file") as refusal:
                load_stable(config, folder, {})
            assert not isinstance(refusal.value, ConfigUnstable)
    finally:
        signal.alarm(0)


@pytest.mark.parametrize("text", ["mod", "<html>\n<h1>502 Bad Gateway</h1>\n</html>", "42"])
def test_a_text_is_no_configuration_for_whoever_has_one(file: Path, text: str) -> None:
    file.write_text(text)

    with pytest.raises(ConfigRejected, match="expected a mapping, got"):
        load_stable(file, None, {})

    (warning,) = load(file, None, {}).warnings  # llama-swap starts with it, without models
    assert f"{file}:1:1: expected a mapping, got" in warning
