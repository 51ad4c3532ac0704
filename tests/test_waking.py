"""Directories that wake, with an inotify that fails on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from twisted.internet import inotify
from twisted.internet.interfaces import IReactorFDSet
from twisted.internet.task import Clock
from twisted.internet.testing import MemoryReactorClock
from twisted.logger import LogEvent, capturedLogs

from llamaswap.waking import DirectoryWaker, directories_of


class FakeInotify:
    """What Twisted's offers, without the kernel."""

    made: list[FakeInotify]
    room = 100  # directories that it takes

    def __init__(self, reactor: object) -> None:
        self.connected = True
        self.disconnecting = False
        self.reading = False
        self.watched: dict[Path, Callable[[object, object, int], None]] = {}
        type(self).made.append(self)

    def startReading(self) -> None:
        self.reading = True

    def watch(self, path: Any, mask: int, callbacks: list[Any]) -> None:
        if len(self.watched) >= self.room:
            raise inotify.INotifyError("full")
        self.watched[Path(path.path.decode())] = callbacks[0]

    def loseConnection(self) -> None:
        self.connected = False


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> list[FakeInotify]:
    """Every inotify that is made."""
    monkeypatch.setattr(FakeInotify, "made", [], raising=False)
    monkeypatch.setattr(inotify, "INotify", FakeInotify)
    return FakeInotify.made


def reasons(lines: Sequence[LogEvent]) -> list[str]:
    """Why there is no waking, as often as it was told."""
    return [line["why"] for line in lines if line["log_format"].startswith("waking.unavailable ")]


def waker(woken: list[int]) -> DirectoryWaker:
    """One on a reactor that reads file descriptors, in theory."""
    reactor = MemoryReactorClock()
    assert IReactorFDSet.providedBy(reactor)
    return DirectoryWaker(cast("Any", reactor), lambda: woken.append(1))


def test_an_event_in_a_watched_directory_wakes(fakes: list[FakeInotify], tmp_path: Path) -> None:
    woken: list[int] = []

    waker(woken).watch(frozenset({tmp_path}))
    assert fakes[0].reading
    fakes[0].watched[tmp_path](None, None, inotify.IN_CREATE)

    assert woken == [1]


def test_the_same_directories_are_not_watched_again(fakes: list[FakeInotify], tmp_path: Path) -> None:
    some = waker([])

    some.watch(frozenset({tmp_path}))
    some.watch(frozenset({tmp_path, tmp_path / "missing"}))

    assert [list(one.watched) for one in fakes] == [[tmp_path]]


def test_a_directory_that_was_replaced_is_watched_anew(fakes: list[FakeInotify], tmp_path: Path) -> None:
    some, folder = waker([]), tmp_path / "d"
    folder.mkdir()
    some.watch(frozenset({folder}))

    folder.rename(tmp_path / "old")
    folder.mkdir()
    some.watch(frozenset({folder}))

    assert [one.connected for one in fakes] == [False, True]


def test_an_inotify_that_has_closed_itself_is_replaced(fakes: list[FakeInotify], tmp_path: Path) -> None:
    some = waker([])
    some.watch(frozenset({tmp_path}))

    fakes[0].disconnecting = True
    some.watch(frozenset({tmp_path}))

    assert len(fakes) == 2
    assert list(fakes[1].watched) == [tmp_path]


def test_a_limit_of_the_system_is_told_once_and_not_tried_again(
    fakes: list[FakeInotify], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeInotify, "room", 1)
    folder = tmp_path / "d"
    folder.mkdir()
    some = waker([])

    with capturedLogs() as lines:
        some.watch(frozenset({tmp_path, folder}))
        some.watch(frozenset({tmp_path}))

    assert [one.connected for one in fakes] == [False]
    assert reasons(lines) == [f"{folder}: no more directories can be watched"]


def test_without_inotify_nothing_wakes_and_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(reactor: object) -> None:
        raise inotify.INotifyError

    monkeypatch.setattr(inotify, "INotify", none_left)
    with capturedLogs() as lines:
        for some in (waker([]), DirectoryWaker(Clock(), lambda: None)):
            some.watch(frozenset({tmp_path}))
            some.watch(frozenset({tmp_path}))
            some.stop()

    assert reasons(lines) == ["no more inotify instances can be had", "this reactor can't read it"]


def test_a_stopped_waker_can_watch_again(fakes: list[FakeInotify], tmp_path: Path) -> None:
    some = waker([])
    some.watch(frozenset({tmp_path}))

    some.stop()
    assert not fakes[0].connected

    some.watch(frozenset({tmp_path}))
    assert fakes[1].connected


def test_a_plain_file_is_replaced_in_its_directory(tmp_path: Path) -> None:
    assert directories_of(tmp_path / "x" / ".." / "c.yaml") == {tmp_path}


def test_a_relative_path_starts_where_we_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert directories_of(Path("c.yaml")) == {tmp_path}


def test_every_link_on_the_way_counts(tmp_path: Path) -> None:
    """A mounted map: config.yaml -> ..data/config.yaml, ..data -> ..1."""
    mount = tmp_path / "etc"
    (mount / "..1").mkdir(parents=True)
    (mount / "..1" / "config.yaml").write_text("x")
    (mount / "..data").symlink_to("..1")
    (mount / "config.yaml").symlink_to("..data/config.yaml")
    (tmp_path / "my.yaml").symlink_to(mount / "config.yaml")

    assert directories_of(tmp_path / "my.yaml") == {tmp_path, mount, mount / "..1"}


def test_a_loop_of_links_and_a_path_that_is_none_end_somewhere(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")

    assert directories_of(tmp_path / "a") == {tmp_path}
    assert directories_of(Path("\0/x")) is not None
