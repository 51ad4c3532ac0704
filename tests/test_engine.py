"""What runs the models, whatever site stands in front of it."""

from __future__ import annotations

from dataclasses import replace

from llamaswap.config.model import LimitsConfig, SchedulerName
from support.dispatch_rig import nothing_goes_wrong
from support.web_daemon import WebDaemon


def test_states_are_those_of_the_children() -> None:
    daemon = WebDaemon()
    assert daemon.engine.states() == {"a": "stopped", "b": "stopped"}

    daemon.chat("b")

    assert daemon.engine.states() == {"a": "stopped", "b": "starting"}


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


def test_the_end_stops_every_child_and_answers_whoever_still_waits_for_a_load() -> None:
    daemon = WebDaemon()
    loading = daemon.chat()
    with nothing_goes_wrong():
        daemon.close()
        ended = daemon.end(4.0)
        assert daemon.child.signals == ["TERM"]
        daemon.goes()

    assert ended.called
    assert loading.status == 503
    assert daemon.engine.states() == {"a": "shutdown", "b": "shutdown"}
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


def test_what_runs_goes_on_under_another_configuration() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm("a")
    running = daemon.chat("a")

    daemon.engine.reconfigure(daemon.config)
    assert not upstream.end.is_aborted()
    upstream.answers()

    assert running.status == 200
    assert daemon.running == ["a"]


def test_a_ticket_keeps_its_place_through_a_change_and_one_without_a_model_is_refused() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm("a")
    daemon.chat("a")
    kept, lost = daemon.chat("a"), daemon.chat("b")
    only_a = replace(daemon.config, models={"a": daemon.config.models["a"]})

    daemon.engine.reconfigure(only_a)

    assert lost.status == 404
    upstream.answers()
    upstream.answers()
    assert kept.status == 200
    assert daemon.engine.states() == {"a": "ready"}


def test_the_limits_of_a_new_configuration_hold_from_then_on_and_refusals_are_counted() -> None:
    daemon = WebDaemon(limits=LimitsConfig(waiting=1))
    daemon.warm()
    daemon.chat()
    waiting, refused = daemon.chat(), daemon.chat()
    assert waiting.waits
    assert (refused.status, refused.headers["retry-after"]) == (503, "5")
    assert refused.json["error"]["code"] == "queue_full"

    daemon.engine.reconfigure(replace(daemon.config, limits=LimitsConfig(waiting=2)))

    assert daemon.chat().waits
    assert daemon.chat().message == "the queue is full"
    assert daemon.metric('llamaswap_limits_reached_total{limit="waiting"}') == 2
    assert [(row.resp_status_code, row.error_msg) for row in daemon.rows] == [(503, "the queue is full")] * 2


def test_what_was_measured_outlives_a_change_of_the_configuration_with_the_models_that_stay() -> None:
    daemon = WebDaemon()
    daemon.warm("a")
    daemon.chat("b")
    daemon.goes()
    daemon.ready()
    daemon.upstream().answers()
    assert daemon.engine.estimates.run("b") is not None

    daemon.engine.reconfigure(replace(daemon.config, models={"a": daemon.config.models["a"]}))

    assert daemon.engine.estimates.run("a") is not None
    assert daemon.engine.estimates.run("b") is None


def test_the_limits_of_waiting_are_those_of_the_configuration_as_it_is_now() -> None:
    daemon = WebDaemon()
    daemon.warm()
    daemon.chat()
    serial = replace(daemon.config.scheduler.serial, max_queue={"normal": 1})
    limited = replace(daemon.config, scheduler=replace(daemon.config.scheduler, serial=serial))

    daemon.engine.reconfigure(limited)

    assert daemon.chat().waits
    assert daemon.chat().status == 429
    fifo = replace(limited.scheduler, use=SchedulerName.FIFO)
    daemon.engine.reconfigure(replace(limited, scheduler=fifo))
    assert daemon.get("/api/queue").json["scheduler"] == "fifo"
