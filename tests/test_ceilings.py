"""What the limits are, and what is said when one is reached."""

from __future__ import annotations

import pytest
from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent

from llamaswap.ceilings import HELD_SHARE, LEAST_HELD, NO_LIMIT, TOLD_EVERY, Ceilings
from llamaswap.config.model import LimitsConfig

GIB = 1 << 30


def ceilings(memory_bytes: int = 0, **limits: int) -> Ceilings:
    """With these limits, on such a machine."""
    return Ceilings(LimitsConfig(**limits), Clock(), memory_bytes)


def test_zero_is_no_limit() -> None:
    none = ceilings(connections=0, waiting=0, request_body=0, held_bodies=0, readers=0)

    every = (none.connections, none.waiting, none.request_body, none.held_bodies, none.readers)
    assert [ceiling.most for ceiling in every] == [NO_LIMIT] * 5


def test_by_default_nobody_who_asks_for_the_usual_notices_anything() -> None:
    usual = ceilings(64 * GIB)

    assert usual.connections.most == NO_LIMIT
    assert (usual.waiting.most, usual.readers.most) == (20_000, 256)
    assert usual.request_body.most == GIB


@pytest.mark.parametrize(
    ("memory", "held"), [(64 * GIB, 64 * GIB // HELD_SHARE), (GIB // 2, LEAST_HELD), (0, LEAST_HELD)]
)
def test_bodies_may_hold_a_share_of_the_memory_unless_it_is_said_how_much(memory: int, held: int) -> None:
    assert ceilings(memory).held_bodies.most == held
    assert ceilings(memory, held_bodies=5).held_bodies.most == 5


def test_no_body_may_be_larger_than_what_all_may_hold() -> None:
    assert ceilings(request_body=1000, held_bodies=100).request_body.most == 100
    assert ceilings(request_body=0, held_bodies=100).request_body.most == 100


def test_a_reload_changes_them_where_they_are_used_and_keeps_the_share_of_the_memory() -> None:
    limits = ceilings(64 * GIB, waiting=5, held_bodies=5)
    waiting = limits.waiting

    limits.configure(LimitsConfig(waiting=7))

    assert waiting.most == 7
    assert limits.held_bodies.most == 16 * GIB


def test_each_refusal_is_counted_and_a_line_tells_of_them_once_a_minute_for_each_limit() -> None:
    clock, told = Clock(), list[str]()
    limits = Ceilings(LimitsConfig(waiting=3, readers=2), clock)
    limits.told = told.append

    with capturedLogs() as logged:
        for _ in range(5):
            limits.waiting.reached()
        limits.readers.reached()
        clock.advance(TOLD_EVERY)
        limits.waiting.reached()

    assert told == [*["waiting"] * 5, "readers", "waiting"]
    assert [formatEvent(event) for event in logged] == [
        "limits.reached limit=waiting most=3 refused=1",
        "limits.reached limit=readers most=2 refused=1",
        "limits.reached limit=waiting most=3 refused=5",
    ]
