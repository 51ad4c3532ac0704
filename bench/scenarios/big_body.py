"""How long a request of 20 MB takes from end to end, as a chat with pictures in it does.

nginx takes part three times: as it comes, which writes such a body to a file
first; with room for it in memory; and passing it on while it comes.  The
daemon has to have the whole body before it knows who should get it, and so is
held against the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from bench.contestants import (
    NGINX,
    Contestant,
    direct,
    llamaswap_config,
    peers,
    start_haproxy,
    start_llamaswap,
    start_nginx,
)
from bench.figures import Figure, Target
from bench.launching import Failed, progress
from bench.lineup import LineUp, pinned, upstream_and_folder
from bench.native import load_json

MILLI = 1e3

BODY = 20_000_000  # bytes
REQUESTS, QUICK_REQUESTS = 8, 4
WARM_UP = 2  # requests, before each contestant's first round

TARGETS = (Target("20 MB body, end to end: at most nginx's time", NGINX, factor=1),)

IN_MEMORY = "client_body_buffer_size 32m;"
STREAMING = "proxy_request_buffering off;"


def measure(rounds: int, quick: bool) -> Figure:
    """Return the median time of a request in milliseconds."""
    requests = QUICK_REQUESTS if quick else REQUESTS
    figure = Figure("big_body", "a 20 MB body, end to end, median", "ms", targets=TARGETS)
    with _with_three_nginxes() as line:
        for contestant in line.rounds(rounds):
            if contestant.name not in figure.samples:
                load_json(contestant.port, requests=WARM_UP, body=BODY)
            figure.add(contestant.name, MILLI * _time(line, contestant, requests))
            progress(f"big_body {contestant.name}: {figure.samples[contestant.name][-1]:.1f} ms")
    return figure


@contextmanager
def _with_three_nginxes() -> Iterator[LineUp]:
    with upstream_and_folder() as (upstream, folder), ExitStack() as stack:
        port = upstream.port
        own = [
            direct(port),
            stack.enter_context(start_nginx(folder, port)),
            stack.enter_context(start_nginx(folder, port, name="nginx-memory", more=IN_MEMORY)),
            stack.enter_context(start_nginx(folder, port, name="nginx-streaming", more=STREAMING)),
            stack.enter_context(start_haproxy(folder, port)),
            stack.enter_context(start_llamaswap(folder, llamaswap_config(folder, port))),
        ]
        there = peers()
        for peer in there:
            stack.enter_context(pinned(peer.pids()))
        yield LineUp(upstream, [*own, *there])


def _time(line: LineUp, contestant: Contestant, requests: int) -> float:
    """Return the median in seconds."""
    line.upstream.records()
    spread = load_json(contestant.port, requests=requests, body=BODY)
    if line.upstream.records().body_bytes != requests * BODY:
        raise Failed(f"big_body: {contestant.name} changed the size of the body")
    return spread.p50
