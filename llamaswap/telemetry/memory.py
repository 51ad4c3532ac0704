"""How much memory there is for us: the machine's, or what our control groups leave of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from llamaswap.telemetry.files import read_number, read_text

_UNLIMITED: Final = 1 << 60  # what the older kind of control group says when it has no limit


def memory_bytes(root: Path, page_bytes: int) -> int | None:
    """Return how much memory there is, within what this process may use.

    The pages that are present count before what the kernel has left of them for others.
    """
    zones = _zones(read_text(root / "proc/zoneinfo") or "")
    pages = sum(present for zone, present in zones if zone != "Device")
    total = pages * page_bytes or _meminfo_bytes(read_text(root / "proc/meminfo") or "", "MemTotal")
    limits = [limit for limit in _group_limits(root) if 0 < limit < _UNLIMITED]
    return min([total, *limits]) if total else None


def available_bytes(root: Path) -> int:
    """Return how much of it nobody uses now, or could be had without swapping; 0 where that is unknown.

    Of a control group it is the limit that counts: most of what a group uses can be had, too.
    """
    available = _meminfo_bytes(read_text(root / "proc/meminfo") or "", "MemAvailable")
    limits = [limit for limit in _group_limits(root) if 0 < limit < _UNLIMITED]
    return min([available, *limits])


def _zones(zoneinfo: str) -> Iterator[tuple[str, int]]:
    zone = ""
    for line in zoneinfo.splitlines():
        words = line.split()
        if line.startswith("Node") and words:
            zone = words[-1]
        elif len(words) == 2 and words[0] == "present":
            yield zone, int(words[1])


def _meminfo_bytes(meminfo: str, key: str) -> int:
    found = re.search(rf"^{key}:\s*(\d+) kB", meminfo, flags=re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def _group_limits(root: Path) -> Iterator[int]:
    """Yield the memory limits of the control groups that this process is in, of both kinds."""
    mounted = root / "sys/fs/cgroup"
    for line in (read_text(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if not controllers:
            yield from _numbers(_upwards(mounted, path, "memory.max"))
        elif "memory" in controllers.split(","):
            yield from _numbers(_upwards(mounted / "memory", path, "memory.limit_in_bytes"))


def _upwards(mounted: Path, path: str, file: str) -> Iterator[Path]:
    """Yield the file in a group and in all above it: within a container the path is one of outside."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    for depth in range(len(parts), -1, -1):
        yield mounted.joinpath(*parts[:depth]) / file


def _numbers(files: Iterable[Path]) -> Iterator[int]:
    for file in files:
        number = read_number(file)
        if number is not None:
            yield number
