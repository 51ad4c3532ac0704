"""Which files a configuration consists of, and their text: the only module that reads disks.

Knows the order of sources and what makes one unusable, nothing of what they say.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from llamaswap.config.mistakes import Place, Report

LARGEST_FILE = 4_194_304
"""Bytes."""

_SUFFIXES = (".yml", ".yaml")


@dataclass(frozen=True, slots=True)
class Source:
    """A file's name as complaints show it, and its text."""

    file: str
    text: str


def read_sources(config: Path | None, config_dir: Path | None, report: Report) -> list[Source]:
    """Read the file, then the directory's `*.yml` and `*.yaml` in byte order of their names.

    What can't be read is reported; the rest is returned.
    """
    paths = [] if config is None else [config]
    if config_dir is not None:
        paths += _in_directory(config_dir, config, report)
    if not paths and not report.mistakes:
        named = "" if config_dir is None else str(config_dir)
        report.wrong(Place(named or "llama-swap"), "", "nothing to load: no configuration file")
    report.files.extend(str(path) for path in paths)
    return [source for path in paths if (source := _read(path, report)) is not None]


def store_trouble(path: str) -> str | None:
    """Why the activity database can't be opened or created there; None when it can."""
    target = Path(path)
    try:
        if target.is_dir():
            return f"{path!r} is a directory"
        if target.exists():
            return None if os.access(target, os.W_OK) else f"{path!r} is not writable"
        if not target.parent.is_dir():
            return f"{str(target.parent)!r} is no directory"
        return None if os.access(target.parent, os.W_OK) else f"{str(target.parent)!r} is not writable"
    except (OSError, ValueError) as error:
        return f"{path!r}: {error}"


def _in_directory(directory: Path, config: Path | None, report: Report) -> list[Path]:
    try:
        entries = list(os.scandir(directory))
    except OSError as error:
        report.wrong(Place(str(directory)), "", f"can't read this directory: {error.strerror}")
        return []
    names = [
        entry.name
        for entry in entries
        if entry.name.endswith(_SUFFIXES) and not entry.is_dir(follow_symlinks=False)
    ]
    found = [directory / name for name in sorted(names, key=os.fsencode)]
    for path in found:
        if config is not None and _normal(path) == _normal(config):
            report.wrong(Place(str(path)), "", "is given twice: by itself and in its directory")
    return found


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
