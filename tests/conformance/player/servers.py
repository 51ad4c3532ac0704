"""A server under test, with the folder, the ports and the peer that a case's placeholders stand for.

Knows how it is started and ended and what its stubs have recorded; what it is asked is not its business.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from conformance.player.corpus import FOLDER
from conformance.player.ports import Ports

STUB = (sys.executable, "-I", "-S", str(FOLDER / "stub.py"))
START = 20.0
"""Seconds until it must listen."""

STOP = 6.0
"""Seconds after SIGTERM until it is killed."""

_BASE = re.compile(r"\{BASE(?:\+(\d+))?\}")
# The last ports of the block; models get the first ones.
_LISTEN, _PEER, _DEAD = 15, 14, 13

T = TypeVar("T")


class Process(Protocol):
    """As much of `subprocess.Popen` as is needed."""

    pid: int

    def poll(self) -> int | None: ...
    def send_signal(self, number: int, /) -> None: ...
    def wait(self, timeout: float | None = None) -> int: ...


Start: TypeAlias = Callable[[Sequence[str], Path, Path], Process]
"""Starts a command line in a folder; its output is added to a file."""


class NotStarted(Exception):
    """The server ended at once, or does not listen."""


class Server:
    """One server process, for as long as its `with` block lasts.

    Args:
        command: shell words; `{CONFIG}` and `{LISTEN}` are filled in.
        config: text of the configuration, with placeholders.
        ports: where its ports come from.
        start: how it is started.
    """

    def __init__(self, command: str, config: str, ports: Ports, start: Start) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="play"))
        self._base = ports.block()
        self.port = self._base + _LISTEN
        self._saw = self.folder / "saw"
        self._values = {
            "{STUB}": shlex.join([*STUB, "--record", str(self._saw)]),
            "{DIR}": str(self.folder),
            "{LISTEN}": f"127.0.0.1:{self.port}",
            "{PEER}": f"127.0.0.1:{self._base + _PEER}",
            "{DEAD}": f"127.0.0.1:{self._base + _DEAD}",
            "{CONFIG}": str(self.folder / "config.yaml"),
        }
        self._has_peer = "{PEER}" in config
        program, *arguments = shlex.split(command)
        # It is started in another folder.
        self._command = [str(Path(program).absolute()) if "/" in program else program, *arguments]
        self._start = start
        self._processes: list[Process] = []
        self.write("config.yaml", self.filled(config))

    def __enter__(self) -> Self:
        """Start it, and its peer.

        Raises:
            NotStarted: it does not come up; nothing is left running.
        """
        try:
            self._bring_up(self._start, self.filled(self._command), self.port)
            if self._has_peer:
                peer = ["--name", "PEER", "--port", str(self._base + _PEER), "--record", str(self._saw)]
                self._bring_up(start_process, [*STUB, *peer], self._base + _PEER)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def filled(self, value: T) -> T:
        """A JSON value with every placeholder replaced, in keys, too."""
        filled: Any
        if isinstance(value, str):
            filled = self._fill(value)
        elif isinstance(value, list):
            filled = [self.filled(item) for item in value]
        elif isinstance(value, dict):
            filled = {self.filled(key): self.filled(item) for key, item in value.items()}
        else:
            filled = value
        result: T = filled
        return result

    def write(self, name: str, text: str) -> None:
        """Put a file into its folder, at once."""
        new = self.folder / "new"
        new.write_text(text, encoding="utf-8")
        new.replace(self.folder / name)

    def send_signal(self, name: str) -> None:
        """Send it a signal, such as `SIGHUP`."""
        self._processes[0].send_signal(getattr(signal, name))

    def saw(self, since: int = 0) -> list[dict[str, Any]]:
        """What its stubs have recorded, without so many lines from the start."""
        try:
            lines = self._saw.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines[since:]]

    def _fill(self, text: str) -> str:
        if "{" not in text:
            return text
        for name, value in self._values.items():
            text = text.replace(name, value)
        return _BASE.sub(lambda found: str(self._base + int(found[1] or 0)), text)

    def _bring_up(self, start: Start, words: list[str], port: int) -> None:
        log = self.folder / "log"
        process = start(words, self.folder, log)
        self._processes.append(process)
        end = time.monotonic() + START
        while not _listens(port):
            if process.poll() is not None:
                raise NotStarted(f"the server ended: {log.read_text(errors='replace')[-400:]}")
            if time.monotonic() > end:
                raise NotStarted("the server does not listen")
            time.sleep(0.02)

    def _stop(self) -> None:
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            try:
                process.wait(STOP)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def start_process(words: Sequence[str], folder: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start a program the usual way."""
    with log.open("ab") as output:
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
