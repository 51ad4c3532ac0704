"""Notice that the configuration's files have changed, and that whoever changed them is done.

Looking every two seconds is what decides: it works on every system and file system, and
through every way to replace a file.  Where directories can wake us, a look comes sooner.
What the files say, and whether it can be used, is the business of whoever is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from llamaswap.config.source import Mark, Signature, look_at_sources
from llamaswap.waking import DirectoryWaker, MakeWaker, Waker, directories_of

POLL = 2.0
"""Seconds between two looks while nothing happens."""

SETTLING = 0.3
"""Seconds for which files must stay as they are before a change of them counts."""

SOON = 0.05
"""Seconds from being woken to the look: whatever else happens meanwhile costs no look of its own."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What is known of the files after some looks."""

    settled: Signature  # what they were when they last rested
    moving: Signature | None = None  # what they have become since
    rests_at: float = 0.0  # seconds on the clock; when `moving` counts if it stays

    def wait(self, now: float) -> float:
        """Seconds until the next look."""
        return POLL if self.moving is None else max(0.0, self.rests_at - now)


def looked(watch: Watch, seen: Signature, now: float) -> tuple[Watch, bool]:
    """Take a look into account.

    Returns:
        What is known now, and whether that is a change to act on: it has rested for
        `SETTLING`, and something came or became different, rather than only went.
    """
    if seen == watch.settled:
        return Watch(watch.settled), False
    if seen != watch.moving:
        return replace(watch, moving=seen, rests_at=now + SETTLING), False
    if now < watch.rests_at:
        return watch, False
    return Watch(seen), offers_something(watch.settled, seen)


def offers_something(before: Signature, after: Signature) -> bool:
    """Whether there is content where before there was other content, or none.

    The file and the directory count separately: what went from one of them is no news, but
    one file less in a directory that still has others is.
    """
    if after.file != before.file and _has_content(after.file):
        return True
    return after.directory != before.directory and any(_has_content(mark) for _, mark in after.directory)


def _has_content(mark: Mark | None) -> bool:
    return mark is not None and mark.size_bytes > 0


class ConfigWatcher:
    """Calls `changed` once for each change of the configuration's files that has come to rest.

    Args:
        config: the file, if there is one.
        config_dir: the directory of files, if there is one.
        clock: all looks are made in its thread; a file system that hangs holds it up.
        changed: what to call; it may stop the watcher.  A later change is told even while
            whoever was called is still busy with this one.
        look: looks at all files.
        notifier: makes what wakes us sooner than the next look.
    """

    def __init__(
        self,
        config: Path | None,
        config_dir: Path | None,
        clock: IReactorTime,
        changed: Callable[[], None],
        *,
        look: Callable[[Path | None, Path | None], Signature] = look_at_sources,
        notifier: MakeWaker = DirectoryWaker,
    ) -> None:
        self._config = config
        self._config_dir = config_dir
        self._clock = clock
        self._changed = changed
        self._look = look
        self._notifier = notifier
        self._waker: Waker | None = None
        self._next: IDelayedCall | None = None
        self._watch = Watch(Signature())

    def start(self, since: Signature | None = None) -> None:
        """Begin to watch.

        Args:
            since: a look from before the files were read, so that no change between that
                and this is missed; without it, the files as they are now count as known.
        """
        if self._waker is not None:
            return
        self._waker = self._notifier(self._clock, self._woken)
        self._watch = Watch(self._look(self._config, self._config_dir) if since is None else since)
        self._go_on()

    def stop(self) -> None:
        """Tell nothing more; `start` begins anew."""
        if self._next is not None:
            self._next.cancel()
            self._next = None
        if self._waker is not None:
            self._waker.stop()
            self._waker = None

    def _go_on(self) -> None:
        """Look, and again later."""
        assert self._waker is not None
        # First the directories, then the look: what happens between the two wakes us.
        self._waker.watch(self._directories())
        seen, now = self._look(self._config, self._config_dir), self._clock.seconds()
        self._watch, told = looked(self._watch, seen, now)
        self._next = self._clock.callLater(self._watch.wait(now), self._go_on)
        if told:
            self._changed()

    def _woken(self) -> None:
        if self._next is not None and self._next.getTime() > self._clock.seconds() + SOON:
            self._next.reset(SOON)

    def _directories(self) -> frozenset[Path]:
        """Where something can happen to the files; a directory's own links are left to the polling."""
        paths = [] if self._config is None else [self._config]
        if self._config_dir is not None:
            paths.append(self._config_dir / "any.yaml")
        return frozenset().union(*map(directories_of, paths))
