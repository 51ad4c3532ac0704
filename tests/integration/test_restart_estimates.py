"""A daemon that is started again foretells waits from what it measured before."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.real_daemon import Daemon, started, stub_config
from support.real_daemon_talk import Wire, chat_body, json_fields, request_bytes, until

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"
HALF_A_SECOND = {"tokens": 10, "gap": 0.05}


def shown(daemon: Daemon) -> Any:
    """What the queue looks like."""
    return daemon.get("/api/queue").json


def asks(open_ones: ExitStack, daemon: Daemon, model: str) -> Wire:
    """Somebody who asks, and does not wait for the answer here."""
    wire = open_ones.enter_context(Wire(daemon.port))
    fields = {**json_fields(None, HALF_A_SECOND, ""), "Connection": "close"}
    wire.send(request_bytes("POST", CHAT, chat_body(model), fields))
    return wire


def test_after_a_restart_the_first_who_waits_is_told_how_long(tmp_path: Path) -> None:
    config = {
        **stub_config(tmp_path, "a", "b", words="--load 1"),
        "store": {"path": str(tmp_path / "activity.db")},
    }
    with started(tmp_path, config) as daemon:
        for model in ("a", "b", "a", "b"):
            assert daemon.chat(model, stub=HALF_A_SECOND).status == 200

    with started(tmp_path, config) as daemon, ExitStack() as open_ones:
        until(lambda: "estimates.seeded models=2 runs=4" in daemon.output(), "the past to be read")
        first = asks(open_ones, daemon, "a")
        until(lambda: shown(daemon)["jobs"], "the first to be dispatched")
        second = asks(open_ones, daemon, "b")
        until(lambda: shown(daemon)["waiting"], "the second to wait")

        queue = shown(daemon)
        (ticket,) = queue["tickets"]
        assert queue["jobs"][0]["state"] == "loading"
        assert 300 < ticket["eta"]["p50_ms"] <= ticket["eta"]["p90_ms"] < 10_000
        assert all(b" 200 OK" in wire.read_to_end() for wire in (first, second))
        assert len(daemon.rows(at_least=6)) == 6
