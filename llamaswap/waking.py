"""Wake somebody when a directory changes, on systems that tell.

Knows Linux's inotify through Twisted, and the symbolic links on the way to a file.  It is
a convenience: whoever is woken looks for himself, and looks now and then anyway.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, cast

from twisted.internet.interfaces import IReactorFDSet, IReactorTime
from twisted.logger import Logger
from twisted.python.filepath import FilePath

MOST_LINKS = 40
"""Symbolic links on the way to a file; the kernel follows no more either."""


class Waker(Protocol):
    """Whatever tells that something happened in one of some directories."""

    def watch(self, directories: frozenset[Path]) -> None:
        """Watch these from now on, no others; those that are missing are passed over."""

    def stop(self) -> None:
        """Tell nothing more."""


MakeWaker = Callable[[IReactorTime, Callable[[], None]], Waker]
"""Called with the reactor, and with what is to be called when something happened."""


class CannotWake(Exception):
    """There is no inotify here, or no more of it: one line that says why."""


class DirectoryWaker:
    """Wakes by inotify; where that can't be had it says so once, and never wakes."""

    _log = Logger()

    def __init__(self, reactor: IReactorTime, wake: Callable[[], None]) -> None:
        self._reactor = reactor
        self._wake = wake
        self._watched: dict[Path, tuple[int, int]] = {}
        self._inotify: Any = None  # Twisted's has no types
        self._given_up = False

    def watch(self, directories: frozenset[Path]) -> None:
        """Watch these from now on, no others; those that are missing are passed over."""
        wanted = {path: seen for path in sorted(directories) if (seen := _identity(path)) is not None}
        if self._given_up or (wanted == self._watched and self._is_alive()):
            return
        self._let_go()
        try:
            self._inotify = make_inotify(self._reactor)
            for path in wanted:
                self._add(path)
        except CannotWake as why:
            self.stop()
            self._given_up = True
            self._log.info("waking.unavailable why={why}; files are only polled", why=str(why))
        else:
            self._watched = wanted

    def stop(self) -> None:
        """Tell nothing more."""
        self._let_go()
        self._watched = {}

    def _add(self, path: Path) -> None:
        from twisted.internet import inotify

        # Closed after writing, moved, created, deleted: not each write, of which a log or a
        # database in the same directory makes many.  Who keeps a file open is found by polling.
        mask = inotify.IN_CLOSE_WRITE | inotify.IN_CREATE | inotify.IN_DELETE
        mask |= inotify.IN_MOVED | inotify.IN_MOVE_SELF
        try:
            self._inotify.watch(FilePath(os.fsencode(path)), mask=mask, callbacks=[self._told])
        except inotify.INotifyError as error:
            if _identity(path) is not None:
                raise CannotWake(f"{path}: no more directories can be watched") from error

    def _told(self, _watch: object, _path: object, _mask: int) -> None:
        self._wake()

    def _is_alive(self) -> bool:
        """Twisted closes all of its inotify as soon as one watched directory is deleted."""
        return self._inotify is not None and self._inotify.connected and not self._inotify.disconnecting

    def _let_go(self) -> None:
        if self._inotify is not None:
            self._inotify.loseConnection()
            self._inotify = None


def make_inotify(reactor: IReactorTime) -> Any:
    """Return Twisted's INotify, reading.

    Raises:
        CannotWake: this system, this reactor or this user's limit has none.
    """
    if not IReactorFDSet.providedBy(reactor):
        raise CannotWake("this reactor can't read it")
    try:
        from twisted.internet import inotify
    except (ImportError, OSError, AttributeError) as error:
        raise CannotWake(f"no inotify here: {error}") from error
    try:
        made = inotify.INotify(cast("Any", reactor))
    except inotify.INotifyError as error:
        raise CannotWake("no more inotify instances can be had") from error
    made.startReading()
    return made


def directories_of(path: Path) -> frozenset[Path]:
    """The directories in which a change can give this name another file: its own, and those of links.

    A file `current/config.yaml`, where `current` leads to `releases/7`, is replaced by a
    change in the directory that holds `current`, or in `releases/7`.  No error is raised:
    what can't be followed ends the way.
    """
    found: set[Path] = set()
    with suppress(OSError, ValueError):
        path = Path(os.path.abspath(path))  # noqa: PTH100 - absolute() keeps '..'
        for _ in range(MOST_LINKS):
            link = _first_link(path)
            if link is None:
                break
            found.add(link.parent)
            # No link stands before the first one, so '..' may be taken literally from there.
            path = Path(os.path.normpath(link.parent / link.readlink() / path.relative_to(link)))
        found.add(path.parent)
    return frozenset(found)


def _first_link(path: Path) -> Path | None:
    """The symbolic link that is met first on the way to a file."""
    way = (*reversed(path.parents), path)
    # Path.is_symlink() raises where permission is missing.
    return next((one for one in way if os.path.islink(one)), None)  # noqa: PTH114


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a directory; None where none is."""
    try:
        seen = path.stat()
    except (OSError, ValueError):
        return None
    return seen.st_dev, seen.st_ino
