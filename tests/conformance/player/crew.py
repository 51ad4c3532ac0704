"""Many cases on several servers at once."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from conformance.player.corpus import Case, in_batches
from conformance.player.playing import play
from conformance.player.ports import Ports
from conformance.player.servers import NotStarted, Server, Start, start_process


@dataclass(frozen=True, slots=True)
class Result:
    """How a case went: it passed when nothing is wrong."""

    case: str  # its id
    wrong: tuple[str, ...]
    took: float


def play_all(
    command: str, cases: Sequence[Case], *, jobs: int, limit: float, start: Start = start_process
) -> Generator[Result]:
    """Play cases, and tell how each went, as soon as its server has ended.

    Args:
        command: starts a server; `{CONFIG}` and `{LISTEN}` are filled in.
        cases: in any order; those that may share a server do.
        jobs: servers at once.
        limit: seconds for a case that has no limit of its own.
        start: how servers are started.

    Whoever stops asking gets the servers ended: cases that have begun are still played.
    """
    ports = Ports()
    with ThreadPoolExecutor(jobs) as crew:
        batches = [
            crew.submit(_play_batch, command, batch, ports, limit, start) for batch in in_batches(cases)
        ]
        try:
            for batch in as_completed(batches):
                yield from batch.result()
        finally:
            crew.shutdown(cancel_futures=True)


def _play_batch(command: str, batch: list[Case], ports: Ports, limit: float, start: Start) -> list[Result]:
    try:
        with Server(command, batch[0]["config"], ports, start) as server:
            return [_play_one(server, case, limit) for case in batch]
    except (NotStarted, OSError) as error:
        return [Result(case["id"], (str(error),), 0.0) for case in batch]


def _play_one(server: Server, case: Case, limit: float) -> Result:
    started = time.monotonic()
    wrong = play(server, case, limit)
    return Result(case["id"], tuple(wrong), time.monotonic() - started)
