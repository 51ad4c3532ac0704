"""When a change of files counts, told with made-up looks and a clock that stands still."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import Clock

from llamaswap.config.source import Mark, Signature
from llamaswap.waking import Waker
from llamaswap.watching import POLL, SETTLING, SOON, ConfigWatcher, Watch, looked

FILE = Path("/nowhere/config.yaml")
FOLDER = Path("/nowhere/conf.d")


def mark(inode: int, size: int = 100) -> Mark:
    """A file, told from others by its inode."""
    return Mark(1, inode, 0, size)


def of_file(inode: int, size: int = 100) -> Signature:
    """A look at a single file."""
    return Signature(mark(inode, size))


def of_folder(**inodes: int) -> Signature:
    """A look at a directory."""
    return Signature(None, tuple((f"{name}.yaml", mark(inode)) for name, inode in inodes.items()))


GONE = Signature()
OLD, NEW, NEWER = of_file(1), of_file(2), of_file(3)


class FakeWaker:
    """Remembers what it was asked to watch."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self.wake = wake
        self.watched: list[frozenset[Path]] = []
        self.stopped = False

    def watch(self, directories: frozenset[Path]) -> None:
        self.watched.append(directories)

    def stop(self) -> None:
        self.stopped = True


class Rig:
    """A watcher whose files are a variable."""

    def __init__(
        self, files: Signature = OLD, config: Path | None = FILE, folder: Path | None = None
    ) -> None:
        self.clock = Clock()
        self.files = files
        self.looks: list[float] = []
        self.told: list[float] = []
        self.wakers: list[FakeWaker] = []
        self.watcher = ConfigWatcher(
            config, folder, self.clock, self.changed, look=self.look, notifier=self.make_waker
        )

    def look(self, config: Path | None, config_dir: Path | None) -> Signature:
        self.looks.append(self.clock.seconds())
        return self.files

    def changed(self) -> None:
        self.told.append(self.clock.seconds())

    def make_waker(self, clock: IReactorTime, wake: Callable[[], None]) -> Waker:
        self.wakers.append(FakeWaker(wake))
        return self.wakers[-1]

    def become(self, files: Signature, *, woken: bool = False) -> None:
        """Change the files; the waker may notice."""
        self.files = files
        if woken:
            self.wakers[-1].wake()

    def advance(self, seconds: float) -> None:
        """Let time pass in small steps, so that every timer fires when it is due."""
        for _ in range(round(seconds / 0.01)):
            self.clock.advance(0.01)


def started(files: Signature = OLD) -> Rig:
    """A rig whose watcher has looked once."""
    rig = Rig(files)
    rig.watcher.start()
    return rig


def test_files_that_stay_as_they_are_tell_nothing() -> None:
    rig = started()

    rig.advance(60)

    assert rig.told == []
    assert len(rig.looks) == pytest.approx(60 / POLL, abs=3)


def test_a_change_is_told_once_within_a_poll_and_a_rest() -> None:
    rig = started()
    rig.advance(0.5)

    rig.become(NEW)
    rig.advance(POLL + SETTLING + 0.05)
    assert len(rig.told) == 1

    rig.advance(60)
    assert len(rig.told) == 1


def test_whoever_is_woken_hears_of_a_change_as_soon_as_it_has_rested() -> None:
    rig = started()
    rig.advance(0.5)

    rig.become(NEW, woken=True)
    rig.advance(SOON + SETTLING - 0.05)
    assert rig.told == []

    rig.advance(0.1)
    assert len(rig.told) == 1


def test_a_change_under_way_is_waited_for() -> None:
    rig = started()

    for inode in range(10, 30):
        rig.become(of_file(inode), woken=True)
        rig.advance(SETTLING / 2)
    assert rig.told == []

    rig.advance(SETTLING + SOON)
    assert len(rig.told) == 1


def test_a_hundred_wakes_cost_a_few_looks() -> None:
    rig = started()
    before = len(rig.looks)

    for _ in range(100):
        rig.become(OLD, woken=True)
        rig.advance(0.01)

    assert len(rig.looks) - before <= 1 / SOON + 1


def test_a_change_that_is_taken_back_at_once_is_none() -> None:
    rig = started()

    rig.become(NEW, woken=True)
    rig.advance(SETTLING / 2)
    rig.become(OLD, woken=True)
    rig.advance(10)

    assert rig.told == []


@pytest.mark.parametrize("nothing", [GONE, of_file(1, size=0)])
def test_a_file_that_goes_or_is_emptied_is_told_when_it_comes_back_even_unchanged(nothing: Signature) -> None:
    rig = started()

    rig.become(nothing, woken=True)
    rig.advance(60)
    assert rig.told == []

    rig.become(OLD, woken=True)
    rig.advance(1)
    assert len(rig.told) == 1


def test_a_file_that_is_replaced_by_way_of_nothing_is_told_once() -> None:
    rig = started()

    for step in (GONE, of_file(2, size=0), of_file(2, size=50), NEW):
        rig.become(step, woken=True)
        rig.advance(0.1)
    rig.advance(10)

    assert len(rig.told) == 1


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (of_folder(a=1), of_folder(a=1, b=2), True),
        (of_folder(a=1, b=2), of_folder(a=1), True),
        (of_folder(a=1), of_folder(a=2), True),
        (of_folder(a=1), of_folder(b=1), True),
        (of_folder(a=1, b=2), GONE, False),
        (GONE, of_folder(a=1), True),
        (of_folder(a=1), Signature(None, (("a.yaml", None),)), False),
        (of_folder(a=1), Signature(None, (("a.yaml", mark(1, size=0)),)), False),
        (Signature(mark(1), (("a.yaml", mark(2)),)), Signature(None, (("a.yaml", mark(2)),)), False),
        (Signature(mark(1), (("a.yaml", mark(2)),)), Signature(mark(1), ()), False),
        (Signature(mark(1), (("a.yaml", mark(2)),)), Signature(None, (("a.yaml", mark(3)),)), True),
        (Signature(mark(1), (("a.yaml", mark(2)),)), Signature(mark(3), ()), True),
    ],
)
def test_what_is_new_is_told_and_what_only_went_is_not(
    before: Signature, after: Signature, told: bool
) -> None:
    rig = started(before)

    rig.become(after, woken=True)
    rig.advance(10)

    assert len(rig.told) == told


def test_a_change_since_the_files_were_read_is_told() -> None:
    rig = Rig(NEW)

    rig.watcher.start(since=OLD)
    rig.advance(SETTLING + 0.05)

    assert len(rig.told) == 1


def test_a_change_while_the_last_one_is_dealt_with_is_told_too() -> None:
    rig = started()

    for files in (NEW, NEWER):
        rig.become(files, woken=True)
        rig.advance(1)

    assert len(rig.told) == 2


def test_whoever_is_told_may_stop_the_watcher() -> None:
    rig = started()
    rig.changed = rig.watcher.stop  # type: ignore[method-assign]  # what it does instead
    rig.watcher._changed = rig.changed

    rig.become(NEW, woken=True)
    rig.advance(1)

    assert rig.wakers[-1].stopped
    assert rig.clock.getDelayedCalls() == []


def test_a_failure_of_whoever_is_told_does_not_end_the_watching() -> None:
    rig = started()

    def fail() -> None:
        rig.told.append(rig.clock.seconds())
        raise ZeroDivisionError

    rig.watcher._changed = fail
    rig.become(NEW, woken=True)
    with pytest.raises(ZeroDivisionError):
        rig.advance(1)
    rig.become(NEWER, woken=True)
    with pytest.raises(ZeroDivisionError):
        rig.advance(1)

    assert len(rig.told) == 2


def test_a_stopped_watcher_looks_no_more_until_it_is_started_again() -> None:
    rig = started()

    rig.watcher.stop()
    rig.watcher.stop()
    rig.become(NEW, woken=True)
    rig.advance(10)
    assert len(rig.looks) == 2
    assert rig.clock.getDelayedCalls() == []

    rig.watcher.start()
    rig.watcher.start()
    rig.advance(10)
    assert rig.told == []
    rig.become(NEWER, woken=True)
    rig.advance(1)
    assert len(rig.told) == 1


def test_the_directories_of_the_file_and_of_the_others_are_watched(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "c.yaml").write_text("x")
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "c.yaml").symlink_to("../real/c.yaml")
    (tmp_path / "conf.d").mkdir()
    rig = Rig(config=tmp_path / "link" / "c.yaml", folder=tmp_path / "conf.d")

    rig.watcher.start()

    assert rig.wakers[-1].watched == [frozenset({tmp_path / "link", tmp_path / "real", tmp_path / "conf.d"})]
    rig.advance(POLL + 0.05)
    assert len(rig.wakers[-1].watched) == 2, "directories come and go, too"


@given(st.lists(st.tuples(st.floats(0.01, 1.0), st.sampled_from([OLD, NEW, NEWER, GONE])), max_size=30))
def test_a_change_counts_only_after_a_rest_and_everything_comes_to_rest(
    looks: list[tuple[float, Signature]],
) -> None:
    watch, now, since, last = Watch(OLD), 0.0, 0.0, OLD
    for gap, seen in looks:
        now += gap
        if seen != last:
            since, last = now, seen
        settled = watch.settled
        watch, told = looked(watch, seen, now)
        assert not told or (now - since >= SETTLING - 1e-9 and seen not in (settled, GONE))
        assert 0.0 <= watch.wait(now) <= POLL
    watch, _ = looked(watch, last, now + 10)
    watch, _ = looked(watch, last, now + 20)
    assert watch == Watch(last)
