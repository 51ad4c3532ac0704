"""A request that somebody ends by its id, wherever it is."""

from __future__ import annotations

from support.web_daemon import WebDaemon
from support.web_talk import Talk

PEERED = """
    routing: {scheduler: {use: serial}}
    models: {a: {cmd: serve a, proxy: "http://127.0.0.1:9001"}}
    peers: {box: {proxy: "http://127.0.0.2:80", models: [far]}}
"""


def cancel(daemon: WebDaemon, flight: int) -> Talk:
    """End a request."""
    return daemon.request("POST", f"/api/inflight/{flight}/cancel")


def test_a_queued_one_is_told_so_and_its_row_says_by_whom() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()
    daemon.chat()
    waiting = daemon.chat("b")
    daemon.reactor.advance(2.0)

    assert cancel(daemon, 3).json == {"msg": "ok"}

    assert (waiting.status, waiting.message) == (503, "the request was cancelled")
    (row,) = daemon.rows
    assert (row.resp_status_code, row.error_msg) == (499, "cancelled by its id while queued, after 2.0 s")
    assert daemon.metric('llamaswap_scheduler_abandoned_total{band="normal"}') == 1
    upstream.answers()
    assert daemon.running == ["a"]
    assert cancel(daemon, 3).status == 404


def test_a_loading_one_frees_the_box_and_the_load_goes_on_unclaimed() -> None:
    daemon = WebDaemon()
    loading = daemon.chat()

    cancel(daemon, 1)

    assert loading.status == 503
    assert daemon.rows[0].error_msg == "cancelled by its id while its model was loading"
    assert daemon.engine.view().jobs == ()
    assert daemon.child.signals == []


def test_one_before_its_answer_cuts_the_upstream_off() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()
    asked, waiting = daemon.chat(), daemon.chat()

    cancel(daemon, 2)

    assert asked.status == 503
    assert upstream.end.is_aborted()
    (row,) = daemon.rows
    assert (row.resp_status_code, row.error_msg) == (
        499,
        "cancelled by its id before the upstream answered",
    )
    daemon.upstream().answers()
    assert waiting.status == 200


def test_one_in_the_middle_is_cut_off_on_both_sides() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()
    asked, waiting = daemon.chat(), daemon.chat()
    upstream.begins(b"data: 1\n\n")

    cancel(daemon, 2)
    daemon.reactor.advance(0)

    assert upstream.end.is_aborted()
    assert asked.end.is_aborted()
    assert asked.pieces == [b"data: 1\n\n"]
    (row,) = daemon.rows
    assert row.resp_status_code == 200
    assert "cancelled by its id" in row.error_msg
    daemon.upstream().answers()
    assert waiting.status == 200


def test_one_that_is_told_of_its_load_is_cut_off() -> None:
    daemon = WebDaemon("""
        routing: {scheduler: {use: serial}}
        models: {a: {cmd: serve a, proxy: "http://127.0.0.1:9001", sendLoadingState: true}}
    """)
    asked = daemon.post("/v1/chat/completions", {"model": "a", "stream": True})
    daemon.reactor.advance(0.5)

    cancel(daemon, 1)

    assert asked.end.is_aborted()
    assert daemon.rows[0].error_msg == "cancelled by its id while its model was loading"
    assert daemon.reactor.getDelayedCalls() != []  # of the child that goes on loading
    daemon.ready()
    daemon.reactor.advance(0)
    assert asked.end.wire.lost


def test_one_at_a_peer_before_and_in_the_middle_of_its_answer() -> None:
    daemon = WebDaemon(PEERED)
    early, late = daemon.chat("far"), daemon.chat("box/far")
    _, far = daemon.upstream(), daemon.upstream()
    far.begins(b"data: 1\n\n")

    cancel(daemon, 1)
    cancel(daemon, 2)

    assert early.status == 503
    assert late.end.is_aborted()
    assert far.end.is_aborted()
    assert [row.resp_status_code for row in daemon.rows] == [499, 200]
    assert all("cancelled by its id" in row.error_msg for row in daemon.rows)


def test_one_that_cannot_be_interrupted_is_cut_off_all_the_same() -> None:
    """`drainOnDisconnect` is about clients that leave; who cancels means it."""
    daemon = WebDaemon("""
        routing: {scheduler: {use: serial}}
        models:
          a: {cmd: serve a, proxy: "http://127.0.0.1:9001", compat: {drainOnDisconnect: true}}
    """)
    upstream = daemon.warm()
    asked = daemon.chat()

    cancel(daemon, 2)

    assert asked.status == 503
    assert upstream.end.is_aborted()


def test_cancelling_twice_in_a_turn_is_once() -> None:
    daemon = WebDaemon()
    daemon.warm()
    asked = daemon.chat()

    first, second = cancel(daemon, 2), cancel(daemon, 2)

    assert (first.status, second.status) == (200, 404)
    assert asked.status == 503
    assert len(daemon.rows) == 1


def test_nobody_is_in_flight_in_the_end() -> None:
    daemon = WebDaemon(PEERED)
    for model in ("a", "a", "far", "ghost"):
        daemon.chat(model)
    for flight in range(1, 5):
        cancel(daemon, flight)

    assert b'"requests\\":[]' in daemon.get("/api/events").body
    assert [row.resp_status_code for row in daemon.rows] == [404, 499, 499, 499]
