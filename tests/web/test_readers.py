"""How many may read events and logs at the same time."""

from __future__ import annotations

import pytest

from llamaswap.config.model import LimitsConfig
from support.web_daemon import WebDaemon
from support.web_talk import Talk

FEW = LimitsConfig(readers=2)
CONFIG = "models: {a: {cmd: serve a, proxy: 'http://127.0.0.1:9001'}}"


def few() -> tuple[WebDaemon, Talk, Talk]:
    """A daemon with room for two, and those two: one for the events, one for the log."""
    daemon = WebDaemon(CONFIG, limits=FEW)
    return daemon, daemon.get("/api/events"), daemon.get("/logs/stream")


@pytest.mark.parametrize("path", ["/api/events", "/logs/stream", "/logs/stream/a"])
def test_events_and_logs_share_one_limit(path: str) -> None:
    daemon, *_ = few()

    refused = daemon.get(path)

    assert refused.status == 503
    assert refused.headers["retry-after"] == "5"
    assert refused.json["error"]["code"] == "too_many_readers"
    assert daemon.engine.metrics.render().count(b'llamaswap_limits_reached_total{limit="readers"} 1.0') == 1


@pytest.mark.parametrize("leaves", [0, 1])
def test_when_one_has_left_another_may_come(leaves: int) -> None:
    daemon, *readers = few()

    readers[leaves].leaves()

    assert daemon.get("/api/events").status == 200
    assert daemon.get("/api/events").status == 503


def test_what_is_no_stream_is_not_counted() -> None:
    daemon, *_ = few()

    assert daemon.get("/logs").status == 200
    assert daemon.request("HEAD", "/api/events").status == 200
    assert daemon.get("/logs/stream/nothing").status == 400
    assert daemon.engine.ceilings.readers.most == 2


def test_streams_that_were_ended_leave_their_places() -> None:
    daemon, *_ = few()

    daemon.generation.end_streams()

    assert [daemon.get("/api/events").status for _ in range(3)] == [200, 200, 503]
