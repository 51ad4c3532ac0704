"""Measure what a daemon's work costs: its peak of memory, and how evenly a stream flows meanwhile."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

from support.real_daemon_talk import Wire, chat_body, json_fields, request_bytes

MIB = 1 << 20


def resident(pid: int) -> int:
    """Bytes of memory that a process has resident now."""
    return _status(pid, "VmRSS")


def peak(pid: int) -> int:
    """The most bytes that a process has had resident since `forget_peak`."""
    return _status(pid, "VmHWM")


def forget_peak(pid: int) -> int:
    """Begin a new peak; returns the bytes resident now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return resident(pid)


def _status(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (size,) = [line.split()[1] for line in lines if line.startswith(name + ":")]
    return 1024 * int(size)


class SteadyStream:
    """A client that reads a stream of tokens to its end in a thread, and notes when each came."""

    def __init__(self, port: int, model: str, tokens: int, gap: float, **stub: Any) -> None:
        self.arrivals: list[float] = []
        self.complete = False
        self._wire = Wire(port)
        fields = json_fields(stub={"tokens": tokens, "gap": gap, **stub})
        self._wire.send(request_bytes("POST", "/v1/chat/completions", chat_body(model, stream=True), fields))
        self._thread = threading.Thread(target=self._read, args=(tokens,), daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._wire.close()
        self._thread.join(10)

    def _read(self, tokens: int) -> None:
        try:
            self._wire.read_until(b"\r\n\r\n")
            for number in range(tokens):
                event = self._wire.read_until(b"\n\n")
                assert b'"n": %d,' % number in event
                self.arrivals.append(time.monotonic())
            self._wire.read_until(b"0\r\n\r\n")
            self.complete = True
        except (AssertionError, OSError, ValueError):
            return

    def wait(self, patience: float = 30.0) -> None:
        """Wait for its end."""
        self._thread.join(patience)
        assert self.complete, f"the stream broke off after {len(self.arrivals)} tokens"

    def largest_gap(self) -> float:
        """The longest time between two tokens, in seconds."""
        return max(after - before for before, after in pairwise(self.arrivals))
