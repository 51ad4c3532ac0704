from __future__ import annotations

from pathlib import Path

import pytest

from llamaswap.telemetry.memory import available_bytes, memory_bytes
from support.telemetry_sources import plant

GIB = 1 << 30
ZONES = """
Node 0, zone      DMA
  pages free     2815
        present  1000
        managed  900
Node 0, zone   Normal
        present  261144
Node 0, zone   Device
        present  999999
"""


def test_the_pages_that_are_present_count_but_not_those_of_a_device(tmp_path: Path) -> None:
    plant(tmp_path, {"proc/zoneinfo": ZONES, "proc/meminfo": "MemTotal: 1000 kB\n"})

    assert memory_bytes(tmp_path, 4096) == 262144 * 4096 == GIB


def test_without_zones_the_kernel_s_own_total_counts(tmp_path: Path) -> None:
    plant(tmp_path, {"proc/meminfo": "MemFree: 1 kB\nMemTotal:       24684092 kB\n"})

    assert memory_bytes(tmp_path, 4096) == 24684092 * 1024


@pytest.mark.parametrize(
    ("groups", "file"),
    [
        ("0::/user.slice/llm.service", "sys/fs/cgroup/user.slice/llm.service/memory.max"),
        ("0::/user.slice/llm.service", "sys/fs/cgroup/user.slice/memory.max"),
        ("0::/", "sys/fs/cgroup/memory.max"),
        ("0::/../../path/of/outside", "sys/fs/cgroup/memory.max"),
        ("5:memory:/docker/abc\n0::/", "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes"),
        ("5:cpu,memory:/docker/abc", "sys/fs/cgroup/memory/memory.limit_in_bytes"),
    ],
)
def test_a_control_group_s_limit_is_all_there_is(tmp_path: Path, groups: str, file: str) -> None:
    plant(tmp_path, {"proc/zoneinfo": ZONES, "proc/self/cgroup": groups, file: str(GIB // 4)})

    assert memory_bytes(tmp_path, 4096) == GIB // 4


@pytest.mark.parametrize("limit", ["max", "9223372036854771712", str(2 * GIB), "0"])
def test_a_limit_that_limits_nothing_does_not_count(tmp_path: Path, limit: str) -> None:
    files = {
        "proc/zoneinfo": ZONES,
        "proc/self/cgroup": "0::/\n5:memory:/",
        "sys/fs/cgroup/memory.max": limit,
        "sys/fs/cgroup/memory/memory.limit_in_bytes": limit,
    }
    assert memory_bytes(plant(tmp_path, files), 4096) == GIB


def test_a_machine_that_tells_nothing_has_an_unknown_amount(tmp_path: Path) -> None:
    assert memory_bytes(tmp_path, 4096) is None


def test_what_is_available_is_the_kernel_s_estimate_within_the_control_group_s_limit(tmp_path: Path) -> None:
    meminfo = "MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:   2097152 kB\n"
    plant(tmp_path, {"proc/meminfo": meminfo, "proc/self/cgroup": "0::/llm.service"})
    assert available_bytes(tmp_path) == 2 * GIB

    plant(tmp_path, {"sys/fs/cgroup/llm.service/memory.max": str(GIB)})
    assert available_bytes(tmp_path) == GIB


def test_nothing_is_known_to_be_available_on_a_machine_that_tells_nothing(tmp_path: Path) -> None:
    assert available_bytes(tmp_path) == 0
