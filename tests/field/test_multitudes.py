"""As many waiting at once as there are descriptors for, and the order in which all of them are served."""

from __future__ import annotations

import random
import re
import resource
import time
from pathlib import Path

import pytest

from support.field import MIB, Field, stub
from support.field_ledger import LEDGER
from support.field_models import Model
from support.field_scale import Scale

pytestmark = pytest.mark.integration

PRIORITIES = {"interactive": 100, "2": 2, "": 0, "normal": 0, "-98": -98, "-99": -99, "batch": -100}
"""What clients say, and the number that it means: further apart than aging gets in the time this takes."""

DISPATCHED = re.compile(r"dispatch\.dispatched model=\w+ ticket=(\d+) band=\w+ priority=(-?\d+) ")

NOTEWORTHY = 0.1  # seconds: whoever has waited so long has a line in the log
SPARE_DESCRIPTORS = 500  # for everything but the crowd, on either side
COST = 8 * 1024  # bytes that a waiting request may cost: 6.3 KiB were measured
KEPT = 12 * 1024  # bytes that one may leave behind: its row, its capture, and what the allocator keeps
PATIENCE = 300.0  # seconds for all of them


def room_for(size: int) -> None:
    """Let this process have so many connections, and the daemon that it starts."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < size + SPARE_DESCRIPTORS:
        pytest.skip(f"{size} connections do not fit into the limit of {most} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def dispatched(field: Field) -> list[tuple[int, int]]:
    """Priority and arrival number of each ticket that had waited, in the order of their dispatch."""
    found = (DISPATCHED.search(line) for line in field.log("dispatch.dispatched"))
    return [(int(match[2]), int(match[1])) for match in found if match]


def side_by_side() -> dict[str, Model | str]:
    """Three models that fit into memory together: no swap, and no affinity, changes the order."""
    return {name: stub(vram=False) for name in "ABC"}


@pytest.mark.alone
def test_thousands_wait_at_once_and_go_by_priority_then_by_arrival(tmp_path: Path, scale: Scale) -> None:
    size = 10_000 if scale.soak else 300
    room_for(size)
    dice = random.Random(5)
    config = {
        "groups": {"all": {"swap": False, "members": ["A", "B", "C"]}},
        "metricsMaxInMemory": 2 * size,
    }
    with Field(tmp_path, side_by_side(), config=config, spare_memory=16 * MIB + KEPT * size) as field:
        for name in "ABC":
            assert field.chat(name).ok
        said = [dice.choice(list(PRIORITIES)) for _ in range(size)]
        crowd = [
            field.prepare(dice.choice("ABC"), priority=word or None, tag=word or "none") for word in said
        ]
        holder = field.send("A", stub={"hang": True})
        field.until(lambda: field.daemon.sockets() > size, "all connections", PATIENCE)
        field.until(lambda: len(field.records("arrived")) == 4, "the job that all wait for")
        idle, began, before = field.daemon.memory(), time.monotonic(), len(dispatched(field))

        field.together(crowd)
        field.until(lambda: field.daemon.waiting() == size, "all to wait", PATIENCE)
        cost = (field.daemon.memory() - idle) / size
        queued, began = time.monotonic() - began, time.monotonic()
        time.sleep(2 * NOTEWORTHY)
        holder.leave()
        assert [call.wait(PATIENCE).wrong() for call in crowd] == [""] * size
        took = time.monotonic() - began

        field.until(lambda: len(dispatched(field)) - before == size, "the line of each")
        order = dispatched(field)[before:]
        assert order == sorted(order, key=lambda ticket: (-ticket[0], ticket[1]))
        falling = sorted((PRIORITIES[word] for word in said), reverse=True)
        arrived = [note["tag"].replace("none", "") for note in field.records("arrived")[4:]]
        assert [PRIORITIES[word] for word in arrived] == falling
        rows = [row["metadata"] for row in field.rows(size + 4)[-size:]]
        assert [int(row["serial_priority"]) for row in rows] == falling
        assert all(int(row["serial_queue_wait_ms"]) >= 2000 * NOTEWORTHY for row in rows)

        assert cost < COST
        if scale.soak:
            LEDGER.notes[f"memory of a waiting request, {size:,} at once"] = f"{cost / 1024:.1f} KiB"
            LEDGER.notes[f"{size:,} at once: all queued after, all served after"] = (
                f"{queued:.1f} s, {took:.1f} s"
            )
