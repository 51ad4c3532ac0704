"""How the daemon starts, and in which order it stops."""

from __future__ import annotations

import json
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from twisted.logger import Logger, globalLogPublisher

from llamaswap.ending import STALLED
from llamaswap.service import LEAST_CHILD_GRACE, STOP_BUDGET, CannotStart
from support.daemon import ServiceRig
from support.web_talk import Upstream

Rigs = Callable[..., ServiceRig]


@pytest.fixture
def rigs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rigs]:
    """Makes services; all are stopped in the end."""
    made: list[ServiceRig] = []

    def make(*args: Any, **options: Any) -> ServiceRig:
        made.append(ServiceRig(monkeypatch, *args, **options))
        return made[-1]

    yield make
    for rig in made:
        rig.finish_stopping()


def warmed(rig: ServiceRig) -> Upstream:
    """A started service with model a loaded; the connection to it is returned."""
    rig.start()
    asked = rig.chat()
    rig.prober.answers(200)
    upstream = Upstream(rig.reactor.accept())
    upstream.answers()
    assert asked.status == 200
    return upstream


def test_a_started_service_answers_on_all_its_ports(rigs: Rigs) -> None:
    rig = rigs(listen=("tcp:8080", "tcp:8081"))

    rig.start()

    assert [port.number for port in rig.reactor.ports] == [8080, 8081]
    assert list(rig.service.addresses()) == ["127.0.0.1:8080", "127.0.0.1:8081"]
    assert rig.ask("GET /health").body == b"OK"


def test_the_service_manager_is_told_that_we_serve_and_that_we_stop(rigs: Rigs, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(5.0)
        rig = rigs(environ={"NOTIFY_SOCKET": str(tmp_path / "notify")})

        rig.start()
        rig.reactor.advance(
            0
        )  # not before the reactor runs, or a signal to stop would find nobody to heed it
        assert manager.recv(4096).startswith(b"READY=1\n")
        rig.stop()
        assert manager.recv(4096).startswith(b"STOPPING=1\n")


def test_a_service_manager_that_went_away_does_not_hinder_a_stop(rigs: Rigs, tmp_path: Path) -> None:
    rig = rigs(environ={"NOTIFY_SOCKET": str(tmp_path / "gone")})
    warmed(rig)

    rig.finish_stopping()

    assert rig.children.closed


PRELOADING = """
    hooks: {on_startup: {preload: [b]}}
    models: {b: {cmd: serve b, proxy: "http://127.0.0.1:9002"}}
"""


def test_preloads_begin_with_the_service(rigs: Rigs) -> None:
    rig = rigs(PRELOADING)
    assert rig.children.started == []

    rig.start()

    assert [child.order.argv for child in rig.children.alive] == [("serve", "b")]


def test_a_taken_port_is_one_line_and_nothing_is_loaded_or_left_open(rigs: Rigs) -> None:
    rig = rigs(PRELOADING, listen=("tcp:8080", "tcp:8081"))
    rig.reactor.taken.add(8081)

    with pytest.raises(CannotStart) as why:
        rig.start()

    assert "tcp:8081" in str(why.value)
    assert "Address already in use" in str(why.value)
    assert "\n" not in str(why.value)
    assert rig.children.started == []
    assert [port.open for port in rig.reactor.ports] == [False]
    assert rig.service.lines not in globalLogPublisher._observers


def test_a_store_that_cannot_be_used_is_one_line_that_names_it(rigs: Rigs, tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("this is no database, but it is long enough to be one " * 100)
    rig = rigs(f"""
        store: {{path: "{tmp_path}/store.db"}}
        models: {{a: {{cmd: serve a, proxy: "http://127.0.0.1:9001"}}}}
    """)

    with pytest.raises(CannotStart) as why:
        rig.start()

    assert str(why.value).startswith(f"{tmp_path}/store.db: ")
    assert "\n" not in str(why.value)
    assert rig.reactor.ports == []


def test_the_scheduler_says_once_what_its_two_knobs_mean_in_seconds(rigs: Rigs) -> None:
    rig = rigs("""
        routing: {scheduler: {use: serial, settings: {serial: {agingDivisor: 30, swapAffinityBonus: 5}}}}
        models: {a: {cmd: serve a, proxy: "http://127.0.0.1:9001"}}
    """)

    rig.start()

    said = rig.service.books.proxy.history().decode()
    assert said.count("scheduler.serial") == 1
    assert "band_head_start=3000s affinity_window=150s" in said


def test_warnings_of_the_configuration_are_logged(rigs: Rigs) -> None:
    rig = rigs("""
        routing: {scheduler: {use: serial, settings: {serial: {agingDivisor: 0}}}}
        models: {a: {cmd: serve a, proxy: "http://127.0.0.1:9001"}}
    """)

    rig.start()

    assert "[WARN] config.warning" in rig.service.books.proxy.history().decode()


# Stopping.


def test_an_idle_service_stops_at_once_and_leaves_nothing(rigs: Rigs) -> None:
    rig = rigs()
    rig.start()
    end = rig.ask("GET /health").end

    rig.finish_stopping()

    assert [port.open for port in rig.reactor.ports] == [False]
    assert end.is_closed()
    assert rig.children.closed
    assert rig.service.lines not in globalLogPublisher._observers
    assert rig.reactor.seconds() == 0.0


def test_a_stop_refuses_who_waits_at_once_and_gives_the_running_job_its_time(rigs: Rigs) -> None:
    rig = rigs()
    upstream = warmed(rig)
    running, waiting = rig.chat(), rig.chat()

    rig.stop()

    assert waiting.status == 503
    assert "retry-after" in waiting.headers
    assert not rig.reactor.ports[0].open
    rig.reactor.advance(20.0)
    assert rig.children.latest.signals == []
    upstream.answers(b"[1]")
    assert running.body == b"[1]"
    assert running.headers["connection"] == "close"
    assert rig.children.latest.signals == ["TERM"]


def test_a_job_that_takes_longer_than_the_budget_is_cut_and_its_row_is_kept(
    rigs: Rigs, tmp_path: Path
) -> None:
    rig = rigs(f"""
        store: {{path: "{tmp_path}/store.db"}}
        routing: {{scheduler: {{use: serial}}}}
        models: {{a: {{cmd: serve a, proxy: "http://127.0.0.1:9001"}}}}
    """)
    upstream = warmed(rig)
    running = rig.chat()
    upstream.begins(b"data: 1\n\n")
    rig.stop()

    rig.reactor.advance(STOP_BUDGET - 0.1)
    assert rig.children.latest.signals == []
    rig.reactor.advance(0.1)
    assert rig.children.latest.signals == ["TERM"]
    rig.reactor.advance(LEAST_CHILD_GRACE)
    assert rig.children.latest.signals == ["TERM", "KILL"]
    rig.children.latest.is_killed()
    rig.finish_stopping()

    assert running.end.is_aborted()
    with sqlite3.connect(tmp_path / "store.db") as store:
        rows = store.execute("SELECT resp_status_code, error_msg FROM activity ORDER BY id").fetchall()
    store.close()
    assert rows[0] == (200, "")
    assert rows[1][0] == 200
    assert "client left" in rows[1][1]


def test_children_get_what_the_jobs_left_of_the_budget(rigs: Rigs) -> None:
    rig = rigs()
    upstream = warmed(rig)
    rig.chat()
    rig.stop()
    rig.reactor.advance(10.0)
    upstream.answers()

    rig.reactor.advance(STOP_BUDGET - 10.0 - 0.1)
    assert rig.children.latest.signals == ["TERM"]
    rig.reactor.advance(0.1)
    assert rig.children.latest.signals == ["TERM", "KILL"]


def test_whoever_is_in_a_hurry_cuts_the_running_job_whose_row_is_kept(rigs: Rigs) -> None:
    rig = rigs(threads=False)
    upstream = warmed(rig)
    running = rig.chat()
    upstream.begins(b"data: 1\n\n")
    stopped = rig.stop()

    rig.service.hurry()
    assert rig.children.latest.signals == ["TERM"]
    rig.children.latest.exits()
    rig.reactor.advance(0)

    assert stopped.called
    assert running.end.is_aborted()
    assert len(rig.rows) == 2
    assert rig.reactor.seconds() < 1.0


WITH_A_PEER = """
    models: {a: {cmd: serve a, proxy: "http://127.0.0.1:9001"}}
    peers: {p: {proxy: "http://127.0.0.1:9100", models: [far]}}
"""


def test_a_stop_gives_an_answer_of_a_peer_the_time_of_any_job(rigs: Rigs) -> None:
    rig = rigs(WITH_A_PEER, threads=False)
    rig.start()
    running = rig.chat("far")
    stopped = rig.stop()

    rig.reactor.advance(STOP_BUDGET - 1.0)
    assert not running.end.is_closed()
    rig.upstream().answers(b"[1]")
    rig.reactor.advance(0)
    rig.reactor.advance(0)

    assert stopped.called
    assert running.body == b"[1]"
    assert running.end.is_closed() and not running.end.is_aborted()


@pytest.mark.parametrize("hurried", [False, True])
def test_an_answer_of_a_peer_is_cut_when_the_time_is_over_or_somebody_is_in_a_hurry(
    rigs: Rigs, hurried: bool
) -> None:
    rig = rigs(WITH_A_PEER, threads=False)
    rig.start()
    running = rig.chat("far")
    rig.upstream().begins(b"data: 1\n\n")
    stopped = rig.stop()

    if hurried:
        rig.service.hurry()
    else:
        rig.reactor.advance(STOP_BUDGET)
    for _ in range(3):
        rig.reactor.advance(0)

    assert stopped.called
    assert running.end.is_aborted()
    assert len(rig.rows) == 1


def test_a_stop_waits_for_a_client_that_takes_its_answer_slowly_but_not_for_one_that_takes_nothing(
    rigs: Rigs,
) -> None:
    rig = rigs(WITH_A_PEER, threads=False)
    rig.start()
    slow, stuck = rig.chat("far"), rig.chat("far")
    for talk in (slow, stuck):
        talk.end.stall()
        rig.upstream().answers(bytes(1_000_000))
    stopped = rig.stop()

    for _ in range(4):
        rig.reactor.pump([0.1] * round(STALLED * 10 - 1))
        slow.end.sip(100_000)
        assert not stopped.called
    slow.end.go_on()
    rig.reactor.pump([0.1] * round(STALLED * 10 + 2))

    assert stopped.called
    assert not slow.end.is_aborted()
    assert stuck.end.is_aborted()


def test_the_service_manager_is_told_of_a_reload_that_changed_nothing(rigs: Rigs, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(5.0)
        rig = rigs(environ={"NOTIFY_SOCKET": str(tmp_path / "notify")})

        rig.service.kept("the new one has mistakes")

        assert manager.recv(4096).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
        assert manager.recv(4096).startswith(
            b"READY=1\nSTATUS=kept the configuration: the new one has mistakes;"
        )


def heard(manager: socket.socket) -> list[bytes]:
    """What waits there to be read."""
    found: list[bytes] = []
    with suppress(BlockingIOError):
        while True:
            found.append(manager.recv(4096))
    return found


def test_signs_of_life_last_as_long_as_the_service(rigs: Rigs, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(5.0)
        rig = rigs(environ={"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "60000000"})

        rig.start()
        rig.reactor.advance(0)
        assert manager.recv(4096).startswith(b"READY=1\n")
        assert manager.recv(4096) == b"WATCHDOG=1"
        rig.reactor.advance(30.0)
        assert manager.recv(4096) == b"WATCHDOG=1"
        rig.finish_stopping()

        rig.reactor.advance(60.0)
        manager.setblocking(False)
        assert b"WATCHDOG=1" not in heard(manager)


def test_a_job_whose_load_fails_during_the_stop_does_not_hold_it_up(rigs: Rigs) -> None:
    rig = rigs()
    rig.start()
    loading = rig.chat()
    rig.stop()

    rig.children.latest.exits(1)
    rig.finish_stopping()

    assert loading.status == 500
    assert rig.reactor.seconds() < 1.0


def test_log_streams_end_properly_when_the_service_stops(rigs: Rigs) -> None:
    rig = rigs()
    rig.start()
    reader = rig.ask("GET /logs/stream?no-history")

    rig.stop()

    assert reader.pieces[-1] == b""


def test_two_services_in_one_process_share_nothing(rigs: Rigs) -> None:
    first, second = rigs(), rigs()
    first.start()
    second.start()
    asked = first.chat()
    first.prober.answers(200)
    Upstream(first.reactor.accept()).answers()
    assert asked.status == 200

    first.finish_stopping()

    assert second.children.started == []
    assert json.loads(second.ask("GET /running").body) == {"running": []}
    assert b'dispatched_total{band="normal"} 0.0' in second.ask("GET /metrics").body
    assert second.ask("GET /health").status == 200


def test_a_stopped_service_hears_no_more_of_the_log(rigs: Rigs) -> None:
    rig = rigs()
    rig.start()
    rig.finish_stopping()
    before = rig.service.books.proxy.written

    Logger(namespace="llamaswap.somewhere").info("somebody.spoke")

    assert rig.service.books.proxy.written == before
