"""What else of a running daemon follows its configuration: keys, streams, captures, preloads, stores."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from twisted.logger import Logger

from llamaswap.activity.journal import GATHER
from llamaswap.service import CannotStart
from support.daemon_reloads import BOTH, Rigs, fleet, started_rigs
from support.telemetry_machine import Machine


@pytest.fixture
def rigs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rigs]:
    """Makes started services; all are stopped in the end, and nothing went wrong."""
    with started_rigs(monkeypatch) as make:
        yield make


# What surrounds the models.


def test_keys_of_the_new_configuration_count_for_the_next_request_of_an_open_connection(rigs: Rigs) -> None:
    rig = rigs()
    asked = rig.ask("GET /v1/models")
    assert asked.status == 200

    rig.reload(fleet(a="serve a", more="apiKeys: [secret]"))
    asked.end.take()
    asked.end.send(b"GET /v1/models HTTP/1.1\r\nHost: h\r\n\r\n")

    assert asked.end.take().startswith(b"HTTP/1.1 401 ")
    assert rig.ask("GET /v1/models", "Authorization: Bearer secret\r\n").status == 200


def test_limits_of_the_new_configuration_count_for_the_next_request_of_an_open_connection(rigs: Rigs) -> None:
    rig = rigs()
    asked = rig.ask("GET /v1/models")
    assert asked.status == 200

    rig.reload(fleet(a="serve a", more="limits: {requestBody: 10, readers: 1}"))
    asked.end.take()
    asked.end.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n")

    assert asked.end.take().startswith(b"HTTP/1.1 413 ")
    assert [rig.ask("GET /api/events").status for _ in range(2)] == [200, 503]


def test_event_and_log_streams_end_properly(rigs: Rigs) -> None:
    rig = rigs()
    readers = [rig.ask(f"GET {path}") for path in ("/api/events", "/logs/stream", "/logs/stream/a")]

    rig.reload(BOTH)

    assert [reader.pieces[-1] for reader in readers] == [b"", b"", b""]
    assert not any(reader.end.is_aborted() for reader in readers)


def test_a_row_of_a_request_that_outlived_the_reload_is_told_to_the_new_readers(rigs: Rigs) -> None:
    rig = rigs()
    upstream = rig.warm("a")
    rig.chat("a")

    rig.reload(fleet(a="serve a"))
    reader = rig.ask("GET /api/events")
    upstream.answers()

    told = b"".join(reader.pieces)
    assert told.count(b'"type":"activity"') == 1
    assert told.count(rb"\"operation\":\"remove\"") == 1


def test_the_list_in_flight_goes_on(rigs: Rigs) -> None:
    rig = rigs()
    upstream = rig.warm("a")
    asked = rig.chat("a")
    upstream.begins(b"data: 1\n\n")

    rig.reload(fleet(a="serve a"))

    assert rb"\"id\":\"2\"" in rig.ask("GET /api/events").body
    assert rig.ask("POST /api/inflight/2/cancel").status == 200
    assert asked.end.is_aborted()


def test_captures_stay(rigs: Rigs) -> None:
    rig = rigs()
    rig.warm("a")
    assert rig.ask("GET /api/captures/1").status == 200

    rig.reload(fleet(a="serve a", more="captureBuffer: 2"))

    assert rig.ask("GET /api/captures/1").status == 200
    assert rig.ask("GET /api/metrics/activity").json["data"][0]["has_capture"]


def test_captures_can_be_switched_off_and_on(rigs: Rigs) -> None:
    rig = rigs()
    upstream = rig.warm("a")
    rig.reload(fleet(a="serve a", more="captureBuffer: 0"))
    assert rig.ask("GET /api/captures/1").status == 404
    rig.chat("a")
    upstream.answers()

    rig.reload(fleet(a="serve a", more="captureBuffer: 1"))
    rig.chat("a")
    upstream.answers()

    assert [rig.ask(f"GET /api/captures/{row}").status for row in (2, 3)] == [404, 200]


def test_the_log_level_counts_at_once(rigs: Rigs) -> None:
    rig = rigs()
    log = Logger(namespace="llamaswap.somewhere")
    log.debug("unheard.said")

    rig.reload(fleet(a="serve a", more="logLevel: debug"))
    log.debug("heard.said")
    rig.reload(fleet(a="serve a", more="logLevel: error"))
    log.warn("again.unheard")

    said = rig.service.books.proxy.history()
    assert b"[DEBUG] heard.said" in said
    assert b"unheard" not in said


def test_no_profile_is_on_after_a_reload(rigs: Rigs) -> None:
    profiles = "profiles: {work: {pins: {x: a}}}"
    rig = rigs(fleet(a="serve a", more=profiles))
    switch = b'PUT /api/profiles/active HTTP/1.1\r\nHost: h\r\nContent-Length: 15\r\n\r\n{"name":"work"}'
    assert rig.send(switch).json == {"active": "work"}

    rig.reload(fleet(a="serve a", more=profiles))

    assert rig.ask("GET /api/profiles").json["active"] is None
    assert rig.chat("x").status == 404


def test_the_service_manager_is_told_of_the_reload(
    rigs: Rigs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr("llamaswap.supervision.Supervisor._send", lambda _self, state: told.append(state))
    rig = rigs(environ={"NOTIFY_SOCKET": str(tmp_path / "notify")})
    rig.reactor.advance(2.5)

    rig.reload(BOTH)

    assert [state.partition("\n")[0] for state in told] == ["READY=1", "RELOADING=1", "READY=1"]
    assert "MONOTONIC_USEC=2500000" in told[1]


def test_what_the_new_settings_mean_is_said_again(rigs: Rigs) -> None:
    rig = rigs()

    rig.reload(fleet(a="serve a", use="{use: serial, settings: {serial: {agingDivisor: 0}}}"))

    said = rig.service.books.proxy.history().decode()
    assert "band_head_start=unbounded affinity_window=unbounded" in said
    assert "[WARN] config.warning" in said
    assert "service.reloaded models=1" in said


# Preloads.


def preloading(*models: str, **commands: str) -> str:
    """A configuration that preloads these."""
    return fleet(more=f"hooks: {{on_startup: {{preload: [{', '.join(models)}]}}}}", **commands)


def test_only_models_that_are_newly_listed_are_preloaded(rigs: Rigs) -> None:
    rig = rigs(preloading("a", a="serve a", b="serve b", c="serve c"))
    rig.ready()
    rig.upstream().answers(b"hello")
    rig.ask("GET /unload")
    rig.goes()

    rig.reload(preloading("a", "b", a="serve a", b="serve b", c="serve c"))

    assert rig.running == ["b"]
    rig.ready()
    rig.upstream().answers(b"hello")
    assert rig.running == ["b"]


def test_preloads_that_wait_or_load_survive_a_reload(rigs: Rigs) -> None:
    config = preloading("a", "b", a="serve a", b="serve b")
    rig = rigs(config)
    assert rig.running == ["a"]

    rig.reload(config)
    rig.ready()
    greeted = rig.upstream()
    assert greeted.line == "GET /"
    greeted.answers(b"hello")
    rig.goes()

    assert rig.running == ["b"]


# Stores.


def stored(path: Path) -> list[str]:
    """The models of a store's rows, oldest first."""
    store = sqlite3.connect(path)
    try:
        return [model for (model,) in store.execute("SELECT model_id FROM activity ORDER BY id")]
    finally:
        store.close()


def kept_in(path: Path, **commands: str) -> str:
    """A configuration with its rows in a file."""
    return fleet(more=f'store: {{path: "{path}"}}', **commands)


def test_another_store_gets_the_rows_from_now_on(rigs: Rigs, tmp_path: Path) -> None:
    rig = rigs(kept_in(tmp_path / "one.db", a="serve a", b="serve b"), threads=True)
    rig.warm("a")

    rig.reload(kept_in(tmp_path / "two.db", a="serve a", b="serve b"))
    rig.warm("b")
    rig.finish_stopping()

    assert stored(tmp_path / "one.db") == ["a"]
    assert stored(tmp_path / "two.db") == ["b"]


def test_a_request_that_outlives_the_change_of_the_store_leaves_its_row_in_the_new_one(
    rigs: Rigs, tmp_path: Path
) -> None:
    rig = rigs(kept_in(tmp_path / "one.db", a="serve a"), threads=True)
    upstream = rig.warm("a")
    running = rig.chat("a")

    rig.reload(kept_in(tmp_path / "two.db", a="serve a"))
    upstream.answers()
    assert running.status == 200
    rig.finish_stopping()

    assert (stored(tmp_path / "one.db"), stored(tmp_path / "two.db")) == (["a"], ["a"])


def test_a_capture_is_not_taken_for_that_of_another_stores_row(rigs: Rigs, tmp_path: Path) -> None:
    rig = rigs(kept_in(tmp_path / "one.db", a="serve a"), threads=True)
    rig.warm("a")
    rig.reactor.advance(GATHER)
    rig.reactor.listen_until(lambda: rig.ask("GET /api/captures/1").status == 200)

    rig.reload(kept_in(tmp_path / "two.db", a="serve a"))

    assert rig.ask("GET /api/captures/1").status == 404


def test_a_store_that_cannot_be_used_leaves_everything_as_it_was(rigs: Rigs, tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_text("this is no database, but it is long enough to be one " * 100)
    rig = rigs(kept_in(tmp_path / "one.db", a="serve a"), threads=True)
    upstream = rig.warm("a")

    with pytest.raises(CannotStart) as why:
        rig.reload(kept_in(tmp_path / "bad.db", b="serve b"))
    asked = rig.chat("a")
    upstream.answers()

    assert str(why.value).startswith(f"{tmp_path}/bad.db: ")
    assert asked.status == 200
    assert rig.chat("b").status == 404
    rig.finish_stopping()
    assert stored(tmp_path / "one.db") == ["a", "a", "b"]


# The machine.


def test_another_pace_of_watching_the_machine_begins_a_new_history(rigs: Rigs) -> None:
    rig = rigs(machine=Machine())
    rig.reactor.pump([5.0] * 2)
    assert len(rig.ask("GET /api/performance").json["sys_stats"]) == 2

    rig.reload(fleet(a="serve a", more="performance: {every: 20s}"))
    rig.reactor.pump([5.0] * 3)
    assert rig.ask("GET /api/performance").json["sys_stats"] is None
    rig.reactor.advance(5.0)

    assert len(rig.ask("GET /api/performance").json["sys_stats"]) == 1
    assert b"llamaswap_memory_total_bytes" in rig.ask("GET /metrics").body


def test_a_reload_that_says_nothing_new_of_it_keeps_the_history(rigs: Rigs) -> None:
    rig = rigs(machine=Machine())
    rig.reactor.advance(5.0)

    rig.reload(fleet(a="serve a"))

    assert len(rig.ask("GET /api/performance").json["sys_stats"]) == 1


def test_watching_can_be_switched_off_and_on(rigs: Rigs) -> None:
    rig = rigs(machine=Machine())
    rig.reactor.advance(5.0)

    rig.reload(fleet(a="serve a", more="performance: {disabled: true}"))
    rig.reactor.pump([5.0] * 3)
    shown = rig.ask("GET /api/performance").json
    assert shown == {"enabled": True, "sys_stats": None, "gpu_stats": None}
    rig.reload(fleet(a="serve a"))
    rig.reactor.advance(5.0)

    assert len(rig.ask("GET /api/performance").json["sys_stats"]) == 1


def test_watching_that_was_off_at_the_start_stays_off(rigs: Rigs) -> None:
    rig = rigs(fleet(a="serve a", more="performance: {disabled: true}"), machine=Machine())

    rig.reload(fleet(a="serve a"))

    assert rig.ask("GET /api/performance").json == {"enabled": False}
