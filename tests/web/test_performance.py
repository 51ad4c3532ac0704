from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from twisted.internet.task import Clock

from llamaswap.errors import Refusal
from llamaswap.http1.exchange import Exchange
from llamaswap.telemetry.errand import Errand
from llamaswap.telemetry.gpu import GpuSample
from llamaswap.telemetry.host import HostSample
from llamaswap.telemetry.sampler import Sampler
from llamaswap.web.answers import refuse
from llamaswap.web.performance import show_performance
from support.http1_wires import Clients
from support.telemetry_sources import GPU, HOST, FakeSource, Threads

EMPTY = {"enabled": True, "sys_stats": None, "gpu_stats": None}


class Page:
    """The page over a sampler in memory."""

    def __init__(self, *gpus: GpuSample, enabled: bool = True) -> None:
        self.clock, run = Clock(), Threads().run
        host = Errand[HostSample]("h", FakeSource(HOST).open, run=run, clock=self.clock, patience=4.0)
        cards = FakeSource[tuple[GpuSample, ...]](gpus)
        gpu = Errand[tuple[GpuSample, ...]]("g", cards.open, run=run, clock=self.clock, patience=4.0)
        sampler = Sampler(
            host, gpu, clock=self.clock, wall=lambda: 1_800_000_000.1 + self.clock.seconds(), every=5.0
        )
        sampler.start()
        self.sampler = sampler if enabled else None

    def get(self, query: str = "") -> tuple[int, Any]:
        """Ask; returns status and document."""

        async def handle(exchange: Exchange) -> None:
            try:
                show_performance(exchange, self.sampler)
            except Refusal as refusal:
                refuse(exchange, refusal)

        end = Clients(handle).connect()
        end.send(f"GET /api/performance{query} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        head, _, body = end.take().partition(b"\r\n\r\n")
        return int(head.split(b" ")[1]), json.loads(body)


def test_a_sample_is_shown_as_llama_swap_shows_it() -> None:
    page = Page(GPU)
    page.clock.advance(5)
    status, document = page.get()

    assert status == 200
    assert document["enabled"] is True
    ((host,), (gpu,)) = document["sys_stats"], document["gpu_stats"]
    assert host.pop("timestamp") == gpu.pop("timestamp")
    assert host == {
        "cpu_util_per_core": [12.5, 7.25],
        "mem_total_mb": 24576,
        "mem_used_mb": 5120,
        "mem_free_mb": 3072,
        "swap_total_mb": 1024,
        "swap_used_mb": 1,
        "load_avg_1": 0.5,
        "load_avg_5": 0.25,
        "load_avg_15": 0.1,
        "net_io": [{"name": "eth0", "bytes_recv": 20, "bytes_sent": 10}],
    }
    assert gpu == {
        "id": 0,
        "name": "GPU",
        "uuid": "GPU-1",
        "temp_c": 40,
        "vram_temp_c": None,
        "gpu_util_pct": 3.0,
        "mem_util_pct": 1.5,
        "mem_used_mb": 300,
        "mem_total_mb": 20000,
        "fan_speed_pct": 30.0,
        "power_draw_w": 60.5,
    }


def test_a_poll_with_two_processors_gives_a_row_for_each() -> None:
    page = Page(GPU, GPU)
    page.clock.advance(5)
    document = page.get()[1]

    assert len(document["sys_stats"]) == 1
    assert len(document["gpu_stats"]) == 2


def test_asking_again_after_the_last_sample_brings_each_exactly_once() -> None:
    page = Page(GPU)
    seen: list[str] = []
    for _ in range(5):
        page.clock.advance(5)
        page.clock.advance(5)
        after = f"?after={quote(seen[-1])}" if seen else ""
        document = page.get(after)[1]
        assert [row["timestamp"] for row in document["sys_stats"]] == [
            row["timestamp"] for row in document["gpu_stats"]
        ]
        seen += [row["timestamp"] for row in document["sys_stats"]]

    assert len(seen) == len(set(seen)) == 10


def test_nothing_yet_is_null_and_nothing_new_is_an_empty_list() -> None:
    page = Page()

    assert page.get() == (200, EMPTY)
    assert page.get("?after=") == (200, EMPTY)
    assert page.get("?after=2999-01-01T00:00:00Z") == (
        200,
        {"enabled": True, "sys_stats": [], "gpu_stats": []},
    )
    page.clock.advance(5)
    assert len(page.get("?after=2000-01-01T00:00:00.5Z")[1]["sys_stats"]) == 1


def test_a_machine_without_graphics_processors_has_none() -> None:
    page = Page()
    page.clock.advance(5)

    assert page.get()[1]["gpu_stats"] is None


@pytest.mark.parametrize("after", ["nonsense", "2026-01-01", "12"])
def test_a_moment_that_is_none_is_a_bad_request(after: str) -> None:
    status, document = Page().get(f"?after={after}")

    assert status == 400
    assert document["error"]["message"] == "invalid 'after' timestamp, use RFC3339 format"


def test_switched_off_is_said_so() -> None:
    assert Page(enabled=False).get() == (503, {"enabled": False})
    assert Page(enabled=False).get("?after=nonsense") == (503, {"enabled": False})
