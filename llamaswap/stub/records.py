"""The files that a stub leaves: what it was asked, how it was started, how often.

Knows nothing of what happens, only how it is written down: each note is one
write of one line, so that many stubs can share a file.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Sequence
from typing import Any


class Record:
    """What happens to one process, as JSON lines.

    Each has `at` (seconds on the machine's monotonic clock), `event`, `alias`
    and `pid`.

    Args:
        path: of the file; None = nothing is written.
        alias: the name it goes by.
    """

    def __init__(self, path: str | None, alias: str) -> None:
        self._alias = alias
        self._file = None if path is None else _open(path)

    def note(self, event: str, **facts: Any) -> None:
        """Write one line."""
        if self._file is None:
            return
        line = {"at": time.monotonic(), "event": event, "alias": self._alias, "pid": os.getpid(), **facts}
        os.write(self._file, json.dumps(line).encode() + b"\n")


def count_start(path: str | None) -> int:
    """Count one more start in a file; returns how many that makes.  Without a file each is the first."""
    if path is None:
        return 1
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        number = int(os.read(file, 32) or b"0") + 1
        os.pwrite(file, b"%d" % number, 0)
        return number
    finally:
        os.close(file)


def note_words(path: str | None, words: Sequence[str]) -> None:
    """Append a command line."""
    if path is not None:
        file = _open(path)
        os.write(file, json.dumps(list(words)).encode() + b"\n")
        os.close(file)


def _open(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
