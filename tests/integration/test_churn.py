"""Hundreds of requests whose clients come and go as they like: nothing may be left of them."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from support.real_daemon import Daemon, events, recorded, started, stub_config
from support.real_daemon_demo import CHAT, WRITER, demo_config, demo_environ
from support.real_daemon_processes import connections
from support.real_daemon_talk import Wire, chat_body, json_fields, request_bytes, until

pytestmark = pytest.mark.integration

SEED: Final = 20261129
PRIORITIES: Final = ("interactive", "102", "normal", "1", "batch", "-98", "nonsense", None)
QUEUED, LOADING, STREAMING = "while queued", "was loading", "in the middle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One request, and how its client behaves."""

    model: str
    priority: str | None
    tokens: int
    patience: float | None  # seconds until the client leaves, wherever it is then; None = it stays
    leaves_on_text: bool  # it leaves when the first text comes


def make_plans(count: int) -> Sequence[Plan]:
    """Draw requests, always the same ones."""
    dice = random.Random(SEED)
    return [
        Plan(
            model=dice.choice("ab"),
            priority=dice.choice(PRIORITIES),
            tokens=dice.randrange(2, 9),
            patience=dice.choice((None, None, dice.uniform(0.0, 0.3), dice.expovariate(10))),
            leaves_on_text=dice.random() < 0.2,
        )
        for _ in range(count)
    ]


def carry_out(daemon: Daemon, plan: Plan) -> bool:
    """Behave as planned; returns whether a whole answer came."""
    fields = json_fields(plan.priority, {"tokens": plan.tokens, "gap": 0.008})
    with Wire(daemon.port) as wire:
        wire.send(request_bytes("POST", "/v1/chat/completions", chat_body(plan.model, stream=True), fields))
        if plan.leaves_on_text:
            wire.read_until(b'"content"')
            wire.abort()
            return False
        if plan.patience is not None:
            return wire.ends_within(plan.patience, b"\r\n0\r\n\r\n")
        assert wire.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 200 ")
        assert b"data: [DONE]" in wire.read_until(b"\r\n0\r\n\r\n")
        return True


def fates(rows: Sequence[dict[str, Any]]) -> Counter[str]:
    """How many rows tell of each way to leave."""
    words = (QUEUED, LOADING, STREAMING)
    return Counter(word for row in rows for word in words if word in row.get("error_msg", ""))


NOTED_LATE = 0.02
"""Seconds: a stub notes the end of an answer when its last byte may have been read already."""


def most_at_once(notes: Sequence[dict[str, Any]]) -> int:
    """How many requests the stubs were busy with at once, of those that were answered to their end."""
    spans: dict[str, list[float]] = {}
    for note in notes:
        spans.setdefault(note["request"], []).append(note["at"])
    left = {note["request"] for note in notes if note["event"] == "left"}
    whole = [span for request, span in spans.items() if len(span) == 2 and request not in left]
    assert len(whole) > 150
    return max(
        sum(begin <= moment <= max(begin, end - NOTED_LATE) for begin, end in whole) for moment, _ in whole
    )


def test_five_hundred_requests_that_come_and_go_leave_nothing_but_their_rows(tmp_path: Path) -> None:
    config = stub_config(tmp_path, words="--load 0.05")
    with started(tmp_path, config) as daemon:
        daemon.chat("a")
        daemon.chat("b")
        until(lambda: connections(daemon.port) == 0, "the end of our connections")
        sockets_before = daemon.sockets()

        with ThreadPoolExecutor(24) as pool:
            served = sum(pool.map(partial(carry_out, daemon), make_plans(500)))

        rows = daemon.rows(502)[2:]
        assert len(rows) == 500
        until(lambda: connections(daemon.port) == 0 and daemon.sockets() <= sockets_before, "closed sockets")
        metrics = daemon.metrics()
        queue = {
            name: value for name, value in metrics.items() if "_queue_depth" in name or "_oldest_" in name
        }
        assert set(queue.values()) == {0.0}
        assert len(queue) == 6

        left = fates(rows)
        dispatched = [row for row in rows if "serial_score" in row["metadata"]]
        assert min(left[QUEUED], left[LOADING], left[STREAMING]) > 0, left
        assert daemon.total("llamaswap_scheduler_dispatched_total") == len(dispatched) + 2
        assert daemon.total("llamaswap_scheduler_abandoned_total") == left[QUEUED] == 500 - len(dispatched)
        assert sum("error_msg" not in row for row in rows) >= served > 150
        nonsense = sum(plan.priority == "nonsense" for plan in make_plans(500))
        assert metrics["llamaswap_scheduler_unparseable_priorities_total"] == nonsense
        assert len(events(tmp_path, "arrived")) <= len(dispatched) + 2
        assert most_at_once(recorded(tmp_path)) == 1


def test_a_crowd_that_leaves_the_queue_does_not_block_it_and_starts_nothing(tmp_path: Path) -> None:
    with started(tmp_path, stub_config(tmp_path, "a", "b", "c")) as daemon, ExitStack() as crowd:
        job = crowd.enter_context(Wire(daemon.port))
        job.send(request_bytes("POST", "/v1/completions", chat_body("a"), json_fields(stub={"first": 30})))
        until(lambda: events(tmp_path, "arrived"), "the job")
        request = request_bytes("POST", "/v1/completions", chat_body("b"), json_fields("interactive"))
        waiting = [crowd.enter_context(Wire(daemon.port)) for _ in range(200)]
        for wire in waiting:
            wire.send(request)
        until(lambda: daemon.waiting() == 200, "the crowd to wait")

        began = time.monotonic()
        for wire in waiting:
            wire.close()
        until(lambda: daemon.waiting() == 0, "the crowd to be gone")
        assert time.monotonic() - began < 2.0

        job.abort()
        assert daemon.chat("c").status == 200
        assert daemon.model_processes("b") == []
        assert "model=b pid" not in daemon.output()
        assert fates(daemon.rows(202))[QUEUED] == 200


def test_a_real_model_is_left_alone_by_those_who_left(tmp_path: Path) -> None:
    dice = random.Random(SEED)
    with started(tmp_path, demo_config(), environ=demo_environ()) as daemon, ThreadPoolExecutor(6) as pool:

        def visit(number: int) -> None:
            body = chat_body((CHAT, WRITER)[number % 2], stream=True, max_tokens=30)
            with Wire(daemon.port) as wire:
                wire.send(request_bytes("POST", "/v1/chat/completions", body, json_fields()))
                if number % 3 == 0:
                    wire.read_until(b"data: [DONE]")
                elif number % 3 == 1:
                    wire.read_until(b'"content"')
                    wire.abort()
                else:
                    wire.ends_within(dice.uniform(0.0, 0.5), b"[DONE]")

        list(pool.map(visit, range(18)))

        rows = daemon.rows(18)
        assert len(rows) == 18
        assert daemon.waiting() == 0
        dispatched = sum("serial_score" in row["metadata"] for row in rows)
        assert daemon.total("llamaswap_scheduler_dispatched_total") == dispatched
