"""The upstream and the clients, written in C so that they cost less than what they measure.

Builds them once and whenever their sources change, runs them, and reads what they say.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.launching import Failed, end, launch, other_processors

SOURCES = Path(__file__).parent / "native"
BUILT = Path(sys.prefix) / "bench"

NANO = 1e-9


@dataclass(frozen=True, slots=True)
class Spread:
    """Many times, summed up; in seconds."""

    count: int
    seconds: float  # that the whole run took
    reconnects: int  # connections that were closed after an answer, and opened again
    low: float
    p50: float
    p90: float
    p99: float
    high: float
    mean: float


@dataclass(frozen=True, slots=True)
class Records:
    """What the upstream has seen since it was last asked."""

    jobs: int
    chunks: int  # of streams, sent
    body_bytes: int
    connections: int  # accepted
    overlaps: int  # jobs that came while another was being answered
    gaps: tuple[float, ...]  # seconds from the end of an answer to the next job
    aborts: dict[int, float]  # id of a stream to the moment at which it was found cut off, monotonic


def build() -> None:
    """Compile what is not there, or is older than its sources.

    Raises:
        Failed: the compiler complains, or there is none.
    """
    newest = max(path.stat().st_mtime for path in SOURCES.iterdir())
    BUILT.mkdir(parents=True, exist_ok=True)
    for name in ("upstream", "load"):
        target = BUILT / name
        if target.exists() and target.stat().st_mtime >= newest:
            continue
        words: list[str | Path] = [
            "cc",
            "-O2",
            "-Wall",
            "-Wextra",
            "-std=gnu11",
            "-o",
            target,
            SOURCES / f"{name}.c",
        ]
        try:
            subprocess.run(words, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Failed(f"cannot build {name}: {error}") from error


class Upstream:
    """The model server; runs until it is left as a context, or stopped."""

    def __init__(self, port: int = 0) -> None:
        build()
        self._process = launch([BUILT / "upstream", str(port)], other_processors(), stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.stop()
            raise Failed(f"the upstream cannot listen on port {port}")
        self.port: int = json.loads(line)["port"]

    def records(self) -> Records:
        """Return what it has seen since this was last asked; it forgets it.

        Raises:
            OSError: it has died.
        """
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30.0)
        try:
            connection.request("GET", "/records")
            seen: dict[str, Any] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        seen["gaps"] = tuple(gap * NANO for gap in seen["gaps"])
        seen["aborts"] = {number: moment * NANO for number, moment in seen["aborts"]}
        return Records(**seen)

    def stop(self) -> None:
        """End it."""
        end(self._process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()


class Load:
    """Clients at work: `bench/native/load.c` says which there are, and their options.

    Args:
        mode: json, sse or abort.
        options: what it takes, as numbers or words; see there.
    """

    def __init__(self, mode: str, port: int, **options: int | str) -> None:
        build()
        words = [f"{name}={value}" for name, value in options.items()]
        self._what = f"load {mode} {' '.join(words)}"
        self._process = launch(
            [BUILT / "load", mode, f"port={port}", *words], other_processors(), stdout=subprocess.PIPE
        )

    def next_line(self) -> dict[str, Any]:
        """Wait for the next thing that it says.

        Raises:
            Failed: it ends without saying anything; its reason is on stderr.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            self.stop()
            raise Failed(f"{self._what}: ended with {code}")
        said: dict[str, Any] = json.loads(line)
        return said

    def result(self) -> dict[str, Any]:
        """Wait for its end and return the last thing that it says.

        Raises:
            Failed: an answer was not as it should be, or it took too long.
        """
        said = self.next_line()
        if "started" in said:
            said = self.next_line()
        if self._process.wait() != 0:
            raise Failed(f"{self._what}: ended with {self._process.returncode}")
        self.stop()
        return said

    def spread(self) -> Spread:
        """Wait for its end and return the times that it measured."""
        return spread_of(self.result())

    def stop(self) -> None:
        """End it, when it has not yet."""
        end(self._process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()


def spread_of(said: dict[str, Any]) -> Spread:
    """Read a result's line, which is in nanoseconds."""
    times = {name.removesuffix("_ns"): said[name] * NANO for name in said if name.endswith("_ns")}
    return Spread(said["count"], said["seconds"], said["reconnects"], **times)


def load_json(port: int, **options: int | str) -> Spread:
    """Let clients ask and be answered, one request after the other each; see `Load`.

    Raises:
        Failed: one answer was not as it should be.
    """
    with Load("json", port, **options) as load:
        return load.spread()


def load_sse(port: int, **options: int | str) -> Spread:
    """Let clients read streams to their ends; what is returned are the delays of chunks.  See `Load`."""
    with Load("sse", port, **options) as load:
        return load.spread()


def load_abort(port: int, **options: int | str) -> dict[int, float]:
    """Leave streams in the middle; return the moments (monotonic) of leaving, by the streams' ids."""
    with Load("abort", port, **options) as load:
        return {number: moment * NANO for number, moment in load.result()["aborts"]}
