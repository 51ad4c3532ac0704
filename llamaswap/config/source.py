"""Which files a configuration consists of, their text, and whether they are still as they were.

The only module of the package that reads disks.  Knows the order of sources and what makes
one unusable, nothing of what they say.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from llamaswap.config.mistakes import ConfigRejected, Mistake, Place, Report

LARGEST_FILE = 4_194_304
"""Bytes."""

STABLE_TRIES = 5
"""How often files that change while they are read are read, before that is called unstable."""

_SUFFIXES = (".yml", ".yaml")


@dataclass(frozen=True, slots=True)
class Source:
    """A file's name as complaints show it, and its text."""

    file: str
    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """What a file looked like: enough to notice that somebody wrote or replaced it."""

    device: int
    inode: int
    modified_ns: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Signature:
    """What all sources looked like; no Mark for what isn't there."""

    file: Mark | None = None
    directory: tuple[tuple[str, Mark | None], ...] = ()  # by name, in byte order


class ConfigUnstable(ConfigRejected):
    """The files can't be relied on now: they change while they are read, or one is empty.

    Whoever has a configuration keeps it and waits until the files change again.
    """


def look_at_sources(config: Path | None, config_dir: Path | None) -> Signature:
    """Look at the files that would be read, through symbolic links.  What can't be seen isn't there."""
    found: list[Path] = []
    if config_dir is not None:
        with suppress(OSError, ValueError):
            found = _yaml_files(config_dir)
    return Signature(
        None if config is None else _mark(config),
        tuple((path.name, _mark(path)) for path in found),
    )


def read_stable(config: Path | None, config_dir: Path | None) -> tuple[list[Source], Report]:
    """Read all sources as they were at one moment, and what is wrong with them.

    Raises:
        ConfigUnstable: there was no such moment, or a file is empty.
    """
    _refuse_pipes(config, config_dir)
    for _ in range(STABLE_TRIES):
        report = Report()
        before = look_at_sources(config, config_dir)
        sources = read_sources(config, config_dir, report)
        if look_at_sources(config, config_dir) == before:
            _refuse_empty(sources)
            return sources, report
    raise _unstable(str(config or config_dir), "changes while it is read")


def read_sources(config: Path | None, config_dir: Path | None, report: Report) -> list[Source]:
    """Read the file, then the directory's `*.yml` and `*.yaml` in byte order of their names.

    What can't be read is reported; the rest is returned.
    """
    paths = [] if config is None else [config]
    if config_dir is not None:
        paths += _in_directory(config_dir, config, report)
    if not paths and not report.mistakes:
        if config_dir is None:
            place, why = "llama-swap", "name a file with --config, or a directory with --config-dir"
        else:
            place, why = str(config_dir), "there is no *.yml or *.yaml in it"
        report.wrong(Place(place), "", f"nothing to load: {why}")
    report.files.extend(str(path) for path in paths)
    return [source for path in paths if (source := _read(path, report)) is not None]


def store_trouble(path: str) -> str | None:
    """Why the activity database can't be opened or created there; None when it can."""
    target = Path(path)
    try:
        if target.is_dir():
            return f"{path!r} is a directory"
        if target.exists():
            if not target.is_file():
                return f"{path!r} is no regular file"
            return None if os.access(target, os.W_OK) else f"{path!r} is not writable"
        if not target.parent.is_dir():
            return f"{str(target.parent)!r} is no directory"
        return None if os.access(target.parent, os.W_OK) else f"{str(target.parent)!r} is not writable"
    except (OSError, ValueError) as error:
        return f"{path!r}: {error}"


def _refuse_empty(sources: list[Source]) -> None:
    """An editor that writes in place leaves a file empty for a moment."""
    for source in sources:
        if not source.text.strip():
            raise _unstable(source.file, "is empty; a comment in it would say that this is meant")


def _refuse_pipes(config: Path | None, config_dir: Path | None) -> None:
    """Refuse a pipe: reading it may not end, and whoever has a configuration can do without."""
    paths = [] if config is None else [config]
    with suppress(OSError, ValueError):
        paths += [] if config_dir is None else _yaml_files(config_dir)
    for path in paths:
        with suppress(OSError, ValueError):
            mode = path.stat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                what = "is no regular file: who reads it may have to wait for ever"
                raise ConfigRejected((Mistake(str(path), 1, 1, "", what),))


def _unstable(file: str, what: str) -> ConfigUnstable:
    return ConfigUnstable((Mistake(file, 1, 1, "", what),))


def _mark(path: Path) -> Mark | None:
    try:
        seen = path.stat()
    except (OSError, ValueError):
        return None
    return Mark(seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_size)


def _in_directory(directory: Path, config: Path | None, report: Report) -> list[Path]:
    try:
        found = _yaml_files(directory)
    except OSError as error:
        report.wrong(Place(str(directory)), "", f"can't read this directory: {error.strerror}")
        return []
    for path in found:
        if config is not None and _normal(path) == _normal(config):
            report.wrong(Place(str(path)), "", "is given twice: by itself and in its directory")
    return found


def _yaml_files(directory: Path) -> list[Path]:
    with os.scandir(directory) as entries:
        names = [
            entry.name
            for entry in entries
            if entry.name.endswith(_SUFFIXES)
            and not entry.is_dir(follow_symlinks=False)
            and not _is_editors_lock(entry)
        ]
    return [directory / name for name in sorted(names, key=os.fsencode)]


def _is_editors_lock(entry: os.DirEntry[str]) -> bool:
    """Emacs leaves a link that leads nowhere beside a file for as long as changes to it are not saved."""
    return entry.name.startswith(".#") and entry.is_symlink() and not Path(entry.path).exists()


def _normal(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links, absolute() keeps '..'


def _read(path: Path, report: Report) -> Source | None:
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        report.wrong(Place(str(path)), "", f"can't read this file: {reason}")
        return None
    if len(raw) > LARGEST_FILE:
        report.wrong(Place(str(path)), "", f"is larger than {LARGEST_FILE} bytes")
        return None
    try:
        return Source(str(path), raw.decode("utf-8").removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line = before.count(b"\n")
        column = len(before.rpartition(b"\n")[2].decode("utf-8", "replace"))
        report.wrong(Place(str(path), line + 1, column + 1), "", "is not UTF-8 text here")
        return None
