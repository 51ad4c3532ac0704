"""The queue of a real daemon: looked at, rearranged, and served in the order that was shown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.real_daemon import Daemon, events, started, stub_config
from support.real_daemon_talk import Wire, ask, chat_body, json_fields, request_bytes, until

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"
CROWD = [
    ("a", "batch", "a batch"),
    ("b", "batch", "b batch"),
    ("b", None, "b normal"),
    ("a", None, "a normal"),
    ("b", "interactive", "b interactive"),
    ("a", "-98", "a max"),
]


def shown(daemon: Daemon, path: str = "/api/queue") -> Any:
    """What a page of the queue says."""
    return daemon.get(path).json


def send(open_ones: ExitStack, daemon: Daemon, model: str, priority: str | None, tag: str) -> Wire:
    """Let somebody ask, and wait until he waits."""
    wire = open_ones.enter_context(Wire(daemon.port))
    before = shown(daemon)["waiting"]
    fields = {**json_fields(priority, None, tag), "Connection": "close"}
    wire.send(request_bytes("POST", CHAT, chat_body(model), fields))
    until(lambda: shown(daemon)["waiting"] == before + 1, f"{tag} to wait")
    return wire


def tags_by_id(daemon: Daemon) -> Mapping[int, str]:
    """Who is who, once all wait: tickets are numbered in the order of arrival."""
    numbers = sorted(ticket["id"] for ticket in shown(daemon)["tickets"])
    return dict(zip(numbers, (tag for _, _, tag in CROWD), strict=True))


def served(folder: Path) -> list[str]:
    """The tags of what reached a stub, in order."""
    return [note["tag"] for note in events(folder, "arrived") if note["tag"]]


def test_a_queue_that_was_rearranged_is_served_as_it_was_shown(tmp_path: Path) -> None:
    with started(tmp_path, stub_config(tmp_path, "a", "b")) as daemon, ExitStack() as open_ones:
        daemon.chat("a")
        assert ask(daemon.port, "POST", "/api/scheduler/pause").json["paused"] == [
            "interactive",
            "normal",
            "batch",
        ]
        wires = {tag: send(open_ones, daemon, model, priority, tag) for model, priority, tag in CROWD}
        tags = tags_by_id(daemon)
        ids = {tag: number for number, tag in tags.items()}
        assert shown(daemon)["jobs"] == []
        assert all(ticket["paused"] for ticket in shown(daemon)["tickets"])

        moved = ask(
            daemon.port, "PATCH", f"/api/queue/{ids['b batch']}", json.dumps({"priority": 101}).encode()
        )
        assert moved.json["band"] == "interactive"
        ahead = shown(daemon, f"/api/queue/{ids['b interactive']}")["ahead"]
        assert [(one["id"], one["by"]) for one in ahead] == [(ids["b batch"], ["priority", "arrival"])]
        assert ask(daemon.port, "DELETE", f"/api/queue/{ids['b normal']}").status == 200
        assert b"503 Service Unavailable" in wires["b normal"].read_to_end()

        order = [tags[ticket["id"]] for ticket in shown(daemon)["tickets"]]
        assert sorted([*order, "b normal"]) == sorted(tag for _, _, tag in CROWD)
        assert ask(daemon.port, "POST", "/api/scheduler/resume").json["paused"] == []
        rows = daemon.rows(at_least=7)

        assert served(tmp_path) == order
        assert order[:2] == ["b batch", "b interactive"]
        assert sorted(row["resp_status_code"] for row in rows) == [200] * 6 + [499]
        assert all(b" 200 OK" in wires[tag].read_to_end() for tag in order)


def test_what_was_measured_foretells_how_long_somebody_waits_and_limits_are_kept(tmp_path: Path) -> None:
    with started(tmp_path, stub_config(tmp_path, "a")) as daemon, ExitStack() as open_ones:
        slow = {"tokens": 10, "gap": 0.05}
        for _ in range(3):
            assert daemon.chat("a", stub=slow).status == 200
        long = open_ones.enter_context(Wire(daemon.port))
        fields = {**json_fields(None, {"tokens": 400, "gap": 0.02}, "long"), "Connection": "close"}
        long.send(request_bytes("POST", CHAT, chat_body("a"), fields))
        until(lambda: shown(daemon)["jobs"], "the long one to run")
        send(open_ones, daemon, "a", None, "next")
        other = send(open_ones, daemon, "a", None, "other")

        first, second = shown(daemon)["tickets"]
        assert second["eta"]["p50_ms"] - first["eta"]["p50_ms"] in range(400, 1200)
        headers = {"Content-Type": "application/json", "X-LlamaSwap-Max-Wait": "100ms"}
        refused = ask(daemon.port, "POST", CHAT, chat_body("a"), headers)
        assert refused.status in (503, 504)
        assert refused.json["error"]["code"] in ("deadline_hopeless", "deadline_passed")
        long.abort()
        assert b" 200 OK" in other.read_to_end()
        daemon.rows(at_least=7)
