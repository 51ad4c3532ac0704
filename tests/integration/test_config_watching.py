"""Real files under a real reactor, changed in every way that people and programs change them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from twisted.internet.task import deferLater

from llamaswap.config.load import load, load_stable
from llamaswap.waking import DirectoryWaker, MakeWaker
from llamaswap.watching import POLL, SETTLING, ConfigWatcher
from support.http1_sockets import on_sockets, reactor

pytestmark = pytest.mark.integration

PATIENCE = 5.0  # seconds
QUIET = SETTLING + 0.15  # seconds after which a change that nobody told of was not one
NOTICED = QUIET if sys.platform == "linux" else POLL + QUIET  # seconds until anything was seen to be gone
AT_ONCE = 1.5  # seconds; only somebody who was woken can be that quick, as polls are rarer


class Watched:
    """A watcher of real files, and how often it told of a change."""

    def __init__(self, config: Path | None, folder: Path | None, notifier: MakeWaker) -> None:
        self.told: list[float] = []
        self.due = 0  # how many changes should have been told of
        self.watcher = ConfigWatcher(config, folder, reactor(), self._changed, notifier=notifier)

    def _changed(self) -> None:
        self.told.append(reactor().seconds())

    async def tells_once(self, change: Callable[[], object]) -> float:
        """Change something; it must be told.  Returns the seconds that it took.

        That it isn't told twice is seen by whatever comes next.
        """
        self.due += 1
        began: float = reactor().seconds()
        change()
        while len(self.told) < self.due:
            assert reactor().seconds() - began < PATIENCE, "nobody told of the change"
            await deferLater(reactor(), 0.02, lambda: None)
        assert len(self.told) == self.due
        return self.told[-1] - began

    async def tells_nothing(self, change: Callable[[], object], patience: float = QUIET) -> None:
        """Change something of which nobody wants to hear."""
        change()
        await deferLater(reactor(), patience, lambda: None)
        assert len(self.told) == self.due

    async def end(self) -> None:
        """Stop, when nothing more has been told for a while."""
        try:
            await self.tells_nothing(lambda: None)
        finally:
            self.watcher.stop()


def watched(
    config: Path | None, folder: Path | None = None, *, notifier: MakeWaker = DirectoryWaker
) -> Watched:
    """A watcher that has begun."""
    some = Watched(config, folder, notifier)
    some.watcher.start()
    return some


class NoWaker:
    """A system without inotify."""

    def watch(self, directories: frozenset[Path]) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""


def in_place(path: Path, text: str) -> Callable[[], object]:
    """Truncate and write, as `cat >` does."""
    return lambda: path.write_text(text)


def beside(path: Path, text: str) -> Callable[[], object]:
    """Write another file and rename it, as careful editors do."""

    def write() -> None:
        new = path.with_name(f".{path.name}.new")
        new.write_text(text)
        new.replace(path)

    return write


def with_backup(path: Path, text: str) -> Callable[[], object]:
    """Rename the old one away, write a new one, remove the old one, as vim does."""

    def write() -> None:
        old = path.with_name(f"{path.name}~")
        path.rename(old)
        path.write_text(text)
        old.unlink()

    return write


def relinked(link: Path, target: str) -> Callable[[], object]:
    """Put another symbolic link in a link's place."""

    def swap() -> None:
        new = link.with_name(f"{link.name}_tmp")
        new.symlink_to(target)
        new.replace(link)

    return swap


@on_sockets
async def test_every_way_to_write_a_file_is_told_once_and_soon(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("# 0")
    some = watched(file)
    try:
        for number, way in enumerate((in_place, beside, with_backup, in_place), 1):
            took = await some.tells_once(way(file, f"# {number}" * number))
            if sys.platform == "linux":
                assert took < AT_ONCE, way
        away = tmp_path / "away"
        await some.tells_nothing(lambda: file.rename(away), NOTICED)
        await some.tells_once(lambda: away.rename(file))
        await some.tells_nothing(lambda: (tmp_path / "other.yaml").write_text("x"))
    finally:
        await some.end()


@on_sockets
async def test_a_mounted_map_is_followed_through_its_swaps(tmp_path: Path) -> None:
    """As Kubernetes does it: the directory that was linked is removed after each swap."""
    file = tmp_path / "config.yaml"
    for number in range(4):
        (tmp_path / f"..{number}").mkdir()
        (tmp_path / f"..{number}" / "config.yaml").write_text(f"logLevel: debug # {number}")
    (tmp_path / "..data").symlink_to("..0")
    file.symlink_to("..data/config.yaml")
    alone, all_of_it = watched(file), watched(None, tmp_path)
    try:
        for number in range(1, 4):

            def swap(number: int = number) -> None:
                relinked(tmp_path / "..data", f"..{number}")()
                (tmp_path / f"..{number - 1}" / "config.yaml").unlink()
                (tmp_path / f"..{number - 1}").rmdir()

            took = await alone.tells_once(swap)
            await all_of_it.tells_once(lambda: None)
            if sys.platform == "linux":
                assert took < AT_ONCE, number
    finally:
        await alone.end()
        await all_of_it.end()


@on_sockets
async def test_a_link_to_a_file_is_followed_and_so_is_what_it_leads_to(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "c.yaml").write_text(f"# {name}")
    (tmp_path / "here").mkdir()
    link = tmp_path / "here" / "config.yaml"
    link.symlink_to("../one/c.yaml")
    some = watched(link)
    try:
        await some.tells_once(beside(tmp_path / "one" / "c.yaml", "# new"))
        await some.tells_once(relinked(link, "../two/c.yaml"))
        await some.tells_once(in_place(tmp_path / "two" / "c.yaml", "# newer"))
        await some.tells_nothing(in_place(tmp_path / "one" / "c.yaml", "# nobody reads this"))
    finally:
        await some.end()


@on_sockets
async def test_a_directory_is_told_of_by_what_it_holds(tmp_path: Path) -> None:
    folder = tmp_path / "conf.d"
    folder.mkdir()
    (folder / "a.yaml").write_text("# a")
    some = watched(None, folder)
    try:
        await some.tells_once(in_place(folder / "b.yml", "# b"))
        await some.tells_once((folder / "b.yml").unlink)
        await some.tells_nothing(in_place(folder / "notes.txt", "x"))
        await some.tells_nothing((folder / "a.yaml").unlink)
        await some.tells_once(in_place(folder / "a.yaml", "# a"))
        await some.tells_nothing(lambda: folder.rename(tmp_path / "old"), NOTICED)
        await some.tells_once(lambda: (tmp_path / "old").rename(folder))
    finally:
        await some.end()


@on_sockets
async def test_where_nothing_wakes_polling_finds_it(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("# 0")
    some = watched(file, notifier=lambda clock, wake: NoWaker())
    try:
        assert await some.tells_once(beside(file, "# 1")) < POLL + SETTLING + 1.0
    finally:
        await some.end()


@on_sockets
async def test_a_file_that_is_written_bit_by_bit_is_loaded_when_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("models: {b: {cmd: 's ${PORT}'}}")
    ports = {model.id: model.port for model in load(file, None, {}).models.values() if model.port}
    some = watched(file)
    try:
        with file.open("w") as writing:
            for line in ("models:\n", "  a:\n", "    cmd: s ${PORT}\n", "  b:\n", "    cmd: s ${PORT}\n"):
                writing.write(line)
                writing.flush()
                await deferLater(reactor(), SETTLING / 4, lambda: None)
            assert some.told == []
        await some.tells_once(lambda: None)
        read = load_stable(file, None, {}, ports=ports)
        assert {name: model.port for name, model in read.models.items()} == {"a": 5801, "b": 5800}
    finally:
        await some.end()
