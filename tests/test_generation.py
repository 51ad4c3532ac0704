"""What one configuration's worth of live objects does as a whole."""

from __future__ import annotations

from support.dispatch_rig import nothing_goes_wrong
from support.web_daemon import WebDaemon


def test_states_and_pids_are_those_of_the_children() -> None:
    daemon = WebDaemon()
    assert daemon.generation.states() == {"a": "stopped", "b": "stopped"}
    assert daemon.generation.pids() == {}

    daemon.chat("b")

    assert daemon.generation.states() == {"a": "stopped", "b": "starting"}
    assert daemon.generation.pids() == {"b": daemon.child.pid}


def test_what_a_child_writes_is_in_its_own_log_and_in_that_of_all_models() -> None:
    daemon = WebDaemon()
    daemon.chat("b")

    daemon.child.says("loading")

    assert daemon.get("/logs/stream/b").pieces == [b"loading\n"]
    assert daemon.get("/logs/stream/upstream").pieces == [b"loading\n"]
    assert daemon.get("/logs/stream/a").pieces == []


def test_a_server_that_stops_keeps_no_connection() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm("a")

    daemon.chat("b")

    assert upstream.end.is_aborted()


def test_a_server_that_crashes_keeps_no_connection() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm("a")

    daemon.child.is_killed()

    assert upstream.end.is_aborted()


def test_a_model_expires_after_its_last_use() -> None:
    daemon = WebDaemon("""
        routing: {scheduler: {use: serial}}
        models: {a: {cmd: serve a, proxy: "http://127.0.0.1:9001", ttl: 5}}
    """)
    upstream = daemon.warm("a")
    daemon.reactor.pump([1.0] * 4)
    daemon.get("/upstream/a/slots")
    daemon.reactor.pump([1.0] * 20)
    assert daemon.child.signals == []
    upstream.answers()

    daemon.reactor.pump([1.0] * 6)

    assert daemon.child.signals == ["TERM"]


def test_pages_about_models_keep_none_of_them_alive() -> None:
    daemon = WebDaemon("""
        routing: {scheduler: {use: serial}}
        models: {a: {cmd: serve a, proxy: "http://127.0.0.1:9001", ttl: 3}}
    """)
    daemon.warm("a")

    for _ in range(5):
        daemon.reactor.pump([1.0])
        for path in ("/health", "/v1/models", "/running", "/metrics", "/logs"):
            assert daemon.get(path).status == 200

    assert daemon.child.signals == ["TERM"]


def test_a_stop_refuses_who_waits_and_lets_the_running_job_finish() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()
    running, waiting = daemon.chat(), daemon.chat()

    daemon.generation.refuse_new()
    idle = daemon.generation.when_idle()

    assert (waiting.status, waiting.headers["retry-after"]) == (503, "5")
    assert daemon.chat().status == 503
    assert [row.resp_status_code for row in daemon.rows] == [503, 503]
    assert not idle.called
    upstream.answers()
    assert running.status == 200
    assert idle.called


def test_the_end_stops_every_child_and_answers_whoever_still_waits_for_a_load() -> None:
    daemon = WebDaemon()
    loading = daemon.chat()
    with nothing_goes_wrong():
        daemon.generation.refuse_new()
        ended = daemon.end(4.0)
        assert daemon.child.signals == ["TERM"]
        daemon.goes()

    assert ended.called
    assert loading.status == 503
    assert daemon.generation.states() == {"a": "shutdown", "b": "shutdown"}
    assert daemon.chat().status == 503
    assert daemon.get("/v1/models").json["data"][0]["status"] == {"value": "unloaded"}


def test_a_child_that_ignores_its_end_is_killed_when_its_grace_is_over() -> None:
    daemon = WebDaemon()
    daemon.warm()

    ended = daemon.end(4.0)
    daemon.reactor.advance(4.0)
    assert daemon.child.signals == ["TERM", "KILL"]
    daemon.child.is_killed()

    assert ended.called
