"""Who takes part in a scenario, and in which order they are measured.

Within one round each contestant is measured once, and the next round begins
with another one: what the machine does meanwhile hits them all alike.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.contestants import (
    Contestant,
    direct,
    llamaswap_config,
    peers,
    start_haproxy,
    start_llamaswap,
    start_nginx,
)
from bench.launching import proxy_processors
from bench.native import Upstream

PEERS_UPSTREAM = 19300
"""Where our upstream listens when peers take part, unless `BENCH_UPSTREAM_PORT` says otherwise."""


@dataclass(frozen=True, slots=True)
class LineUp:
    """An upstream and the contestants in front of it, all running."""

    upstream: Upstream
    contestants: Sequence[Contestant]

    def rounds(self, count: int) -> Iterator[Contestant]:
        """Yield each contestant `count` times, round by round, the order turned by one each time."""
        for number in range(count):
            start = number % len(self.contestants)
            yield from (*self.contestants[start:], *self.contestants[:start])


@contextmanager
def everybody() -> Iterator[LineUp]:
    """Start an upstream and all proxies, the daemon with the fifo scheduler and practically no limit."""
    with upstream_and_folder() as (upstream, folder), ExitStack() as stack:
        config = llamaswap_config(folder, upstream.port)
        own = [
            direct(upstream.port),
            stack.enter_context(start_nginx(folder, upstream.port)),
            stack.enter_context(start_haproxy(folder, upstream.port)),
            stack.enter_context(start_llamaswap(folder, config)),
        ]
        there = peers()
        for peer in there:
            stack.enter_context(pinned(peer.pids()))
        yield LineUp(upstream, [*own, *there])


@contextmanager
def upstream_and_folder() -> Iterator[tuple[Upstream, Path]]:
    """Start an upstream; make a folder for configurations and logs.  Both are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, Upstream(upstream_port()) as upstream:
        yield upstream, Path(folder)


def upstream_port() -> int:
    """Return where the upstream is to listen, 0 for anywhere."""
    otherwise = PEERS_UPSTREAM if os.environ.get("BENCH_PEER") else 0
    return int(os.environ.get("BENCH_UPSTREAM_PORT") or otherwise)


@contextmanager
def pinned(pids: Sequence[int]) -> Iterator[None]:
    """Keep processes that are not ours on the proxies' processor for as long as this lasts."""
    threads = [int(path.name) for pid in pids for path in Path(f"/proc/{pid}/task").iterdir()]
    before = {thread: os.sched_getaffinity(thread) for thread in threads}
    for thread in threads:
        os.sched_setaffinity(thread, proxy_processors())
    try:
        yield
    finally:
        for thread, processors in before.items():
            os.sched_setaffinity(thread, processors)
