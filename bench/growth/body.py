"""How long a request takes, end to end, with a larger and larger body.

nginx takes part twice: as it comes, which writes a body of more than 16 KB to
a file first, and with room for it in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from bench.contestants import direct, llamaswap_config, start_haproxy, start_llamaswap, start_nginx
from bench.figures import Curve
from bench.lineup import LineUp, upstream_and_folder
from bench.native import load_json

KB = 1000
SIZES = (1 * KB, 10 * KB, 100 * KB, 1000 * KB, 5000 * KB, 20_000 * KB)
ENOUGH = 20_000 * KB
"""Bytes of bodies that a size is measured with, within LEAST and MOST requests."""

LEAST, MOST = 5, 200
ROUNDS = 3
IN_MEMORY = "client_body_buffer_size 32m;"


def measure(quick: bool) -> Curve:
    """Send bodies of each size through everybody in turn; the median of the best round counts."""
    curve = Curve(
        name="body",
        title="A request with a large body, end to end",
        x_label="size of the body, bytes",
        y_label="ms",
    )
    with _lineup() as lineup:
        for size in SIZES[1::2] if quick else SIZES:
            times: dict[str, float] = {}
            for contestant in lineup.rounds(1 if quick else ROUNDS):
                took = load_json(contestant.port, body=size, requests=_requests(size)).p50
                times[contestant.name] = min(took, times.get(contestant.name, took))
            for name, took in times.items():
                curve.series.setdefault(name, []).append((float(size), took * 1e3))
    return curve


def _requests(size: int) -> int:
    return min(MOST, max(LEAST, ENOUGH // size))


@contextmanager
def _lineup() -> Iterator[LineUp]:
    with upstream_and_folder() as (upstream, folder), ExitStack() as stack:
        port = upstream.port
        yield LineUp(
            upstream,
            [
                direct(port),
                stack.enter_context(start_nginx(folder, port)),
                stack.enter_context(start_nginx(folder, port, name="nginx-memory", more=IN_MEMORY)),
                stack.enter_context(start_haproxy(folder, port)),
                stack.enter_context(start_llamaswap(folder, llamaswap_config(folder, port))),
            ],
        )
