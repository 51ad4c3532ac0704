"""What one configuration's worth of live objects does as a whole."""

from __future__ import annotations

from support.web_daemon import WebDaemon


def test_what_a_child_writes_is_in_its_own_log_and_in_that_of_all_models() -> None:
    daemon = WebDaemon()
    daemon.chat("b")

    daemon.child.says("loading")

    assert daemon.get("/logs/stream/b").pieces == [b"loading\n"]
    assert daemon.get("/logs/stream/upstream").pieces == [b"loading\n"]
    assert daemon.get("/logs/stream/a").pieces == []


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

    daemon.close()
    idle = daemon.engine.when_idle()

    assert (waiting.status, waiting.headers["retry-after"]) == (503, "5")
    assert daemon.chat().status == 503
    assert [row.resp_status_code for row in daemon.rows] == [503, 503]
    assert not idle.called
    upstream.answers()
    assert running.status == 200
    assert idle.called
