"""Which models and requests a running daemon keeps, changes and ends when its configuration changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.daemon_reloads import BOTH, SIDE_BY_SIDE, Rigs, fleet, half_sent, started_rigs, the_rest


@pytest.fixture
def rigs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rigs]:
    """Makes started services; all are stopped in the end, and nothing went wrong."""
    with started_rigs(monkeypatch) as make:
        yield make


# Models that stay, change or go.


def test_a_model_that_did_not_change_keeps_its_child_and_its_stream(rigs: Rigs) -> None:
    rig = rigs()
    upstream = rig.warm("a")
    streaming = rig.chat("a")
    upstream.begins(b"data: 1\n\n")

    rig.reload(fleet(a="serve a", b="serve b --new"))
    upstream.goes_on(b"data: 2\n\n", b"")

    assert streaming.pieces == [b"data: 1\n\n", b"data: 2\n\n", b""]
    assert [child.signals for child in rig.children.started] == [[]]
    assert [row.resp_status_code for row in rig.rows] == [200, 200]


def test_settings_that_need_no_other_child_count_at_once(rigs: Rigs) -> None:
    rig = rigs()
    upstream = rig.warm("a")

    rig.reload(fleet(a="serve a, aliases: [nick], concurrencyLimit: 1", b="serve b"))
    asked, refused = rig.chat("nick"), rig.chat("a")
    upstream.answers()

    assert (asked.status, refused.status) == (200, 429)
    assert len(rig.children.started) == 1


def test_an_idle_model_that_changed_stops_at_once_and_comes_back_as_the_new_one(rigs: Rigs) -> None:
    rig = rigs()
    rig.warm("a")

    rig.reload(fleet(a="serve a --new", b="serve b"))
    assert rig.children.latest.signals == ["TERM"]
    asked = rig.chat("a")
    rig.goes()
    assert rig.running == ["a --new"]
    rig.ready()
    rig.upstream().answers()

    assert asked.status == 200


def test_a_busy_model_that_changed_serves_to_the_end_and_who_waits_gets_the_new_one(rigs: Rigs) -> None:
    rig = rigs()
    upstream = rig.warm("a")
    running, waiting = rig.chat("a"), rig.chat("a")
    upstream.begins(b"data: 1\n\n")

    rig.reload(fleet(a="serve a --new", b="serve b"))
    assert rig.children.latest.signals == []
    upstream.goes_on(b"")
    assert running.pieces == [b"data: 1\n\n", b""]
    assert rig.children.latest.signals == ["TERM"]
    rig.goes()
    rig.ready()
    rig.upstream().answers()

    assert waiting.status == 200
    assert rig.running == ["a --new"]


def test_requests_that_overlap_do_not_keep_a_changed_model_alive(rigs: Rigs) -> None:
    rig = rigs(fleet(a="serve a", use="{use: fifo}"))
    upstream = rig.warm("a")
    before = rig.chat("a")

    rig.reload(fleet(a="serve a --new", use="{use: fifo}"))
    behind = rig.chat("a")
    upstream.answers()
    rig.goes()
    rig.ready()
    rig.upstream().answers()

    assert (before.status, behind.status) == (200, 200)
    assert rig.running == ["a --new"]


def test_who_only_looks_does_not_keep_a_changed_model_from_its_next_job(rigs: Rigs) -> None:
    rig = rigs()
    upstream = rig.warm("a")
    looking = rig.ask("GET /upstream/a/slots")
    upstream.begins(b"data: 1\n\n")

    rig.reload(fleet(a="serve a --new", b="serve b"))
    assert rig.children.latest.signals == []
    asked = rig.chat("a")
    assert rig.children.latest.signals == ["TERM"]
    rig.goes()
    upstream.dies()
    rig.ready()
    rig.upstream().answers()

    assert asked.status == 200
    assert looking.end.is_aborted()


def test_a_model_that_changed_back_keeps_its_child(rigs: Rigs) -> None:
    rig = rigs()
    upstream = rig.warm("a")
    running, waiting = rig.chat("a"), rig.chat("a")

    rig.reload(fleet(a="serve a --new", b="serve b"))
    rig.reload(BOTH)
    upstream.answers()
    upstream.answers()

    assert (running.status, waiting.status) == (200, 200)
    assert [child.signals for child in rig.children.started] == [[]]


def test_a_model_that_was_removed_lets_its_running_request_end_and_tells_who_waits(rigs: Rigs) -> None:
    rig = rigs()
    upstream = rig.warm("a")
    running, waiting = rig.chat("a"), rig.chat("a")
    upstream.begins(b"data: 1\n\n")

    rig.reload(fleet(b="serve b"))
    assert (waiting.status, waiting.json["error"]["code"]) == (404, "not_found")
    assert rig.chat("a").status == 404
    assert rig.children.latest.signals == []
    upstream.goes_on(b"")

    assert running.pieces == [b"data: 1\n\n", b""]
    assert rig.children.latest.signals == ["TERM"]
    rig.goes()
    assert rig.running == []
    assert [row.resp_status_code for row in rig.rows] == [200, 404, 404, 200]


def test_a_removed_idle_model_stops_and_makes_room(rigs: Rigs) -> None:
    rig = rigs()
    rig.warm("a")

    rig.reload(fleet(b="serve b"))
    asked = rig.chat("b")
    assert rig.running == ["a"]
    rig.goes()
    assert rig.running == ["b"]
    rig.ready()
    rig.upstream().answers()

    assert asked.status == 200


@pytest.mark.parametrize("first", ["exit", "connection"])
def test_a_removed_model_that_crashes_breaks_only_its_own_request(rigs: Rigs, first: str) -> None:
    rig = rigs()
    upstream = rig.warm("a")
    running, other = rig.chat("a"), rig.chat("b")
    upstream.begins(b"data: 1\n\n")
    rig.reload(fleet(b="serve b"))

    if first == "exit":
        rig.children.latest.is_killed()
        upstream.dies()
    else:
        upstream.dies()
        rig.children.latest.is_killed()
    rig.reactor.advance(0.3)
    rig.ready()
    rig.upstream().answers()

    assert running.end.is_aborted()
    assert other.status == 200


def test_a_removed_model_that_comes_back_while_it_is_busy_keeps_its_child(rigs: Rigs) -> None:
    rig = rigs()
    upstream = rig.warm("a")
    running = rig.chat("a")

    rig.reload(fleet(b="serve b"))
    rig.reload(BOTH)
    after = rig.chat("a")
    upstream.answers()
    upstream.answers()

    assert (running.status, after.status) == (200, 200)
    assert len(rig.children.started) == 1


def test_a_removed_model_is_seen_nowhere_while_it_still_serves(rigs: Rigs) -> None:
    rig = rigs()
    upstream = rig.warm("a")
    running = rig.chat("a")

    rig.reload(fleet(b="serve b"))

    assert [model["id"] for model in rig.ask("GET /v1/models").json["data"]] == ["b"]
    assert rig.ask("GET /running").json == {"running": []}
    assert rig.ask("GET /logs/stream/a").status == 400
    assert rig.ask("POST /api/models/unload/a").status == 404
    upstream.answers()
    assert running.status == 200


def test_a_new_model_can_be_used_counted_and_read_at_once(rigs: Rigs) -> None:
    rig = rigs(fleet(a="serve a"))

    rig.reload(BOTH)
    rig.warm("b")
    rig.children.latest.says("hello")

    assert b'llamaswap_swaps_total{model="b"} 1.0' in rig.ask("GET /metrics").body
    assert b'llamaswap_requests_total{code="200",model="b"} 1.0' in rig.ask("GET /metrics").body
    assert rig.ask("GET /logs/stream/b").pieces == [b"hello\n"]


def test_what_a_kept_model_said_before_can_still_be_read(rigs: Rigs) -> None:
    rig = rigs()
    rig.warm("a")
    rig.children.latest.says("before")

    rig.reload(fleet(a="serve a"))
    rig.children.latest.says("after")

    assert rig.ask("GET /logs/stream/a").pieces == [b"before\nafter\n"]
    assert rig.ask("GET /logs/stream/upstream").pieces == [b"before\nafter\n"]


def test_a_reload_is_no_sign_of_life(rigs: Rigs) -> None:
    rig = rigs(fleet(a="serve a, ttl: 10"))
    rig.warm("a")
    rig.reactor.pump([1.0] * 6)

    rig.reload(fleet(a="serve a, ttl: 10", b="serve b"))
    rig.reactor.pump([1.0] * 4)

    assert rig.children.latest.signals == ["TERM"]


def test_a_new_time_to_live_counts_from_the_reload_at_the_latest(rigs: Rigs) -> None:
    rig = rigs(fleet(a="serve a"))
    rig.warm("a")

    rig.reload(fleet(a="serve a, ttl: 3"))
    rig.reactor.pump([1.0] * 3)

    assert rig.children.latest.signals == ["TERM"]


# While a model loads.


def test_a_load_of_an_unchanged_model_goes_on(rigs: Rigs) -> None:
    rig = rigs()
    loading = rig.chat("a")

    rig.reload(fleet(a="serve a", b="serve b --new"))
    rig.ready()
    rig.upstream().answers()

    assert loading.status == 200
    assert len(rig.children.started) == 1


@pytest.mark.parametrize("use", ["serial", "fifo"])
def test_a_load_of_a_model_that_changed_begins_again_and_serves_its_request(rigs: Rigs, use: str) -> None:
    rig = rigs(fleet(a="serve a", use=f"{{use: {use}}}"))
    loading = rig.chat("a")

    rig.reload(fleet(a="serve a --new", use=f"{{use: {use}}}"))
    assert rig.children.latest.signals == ["TERM"]
    rig.goes()
    assert rig.running == ["a --new"]
    rig.ready()
    rig.upstream().answers()

    assert loading.status == 200


@pytest.mark.parametrize("use", ["serial", "fifo"])
def test_a_load_of_a_removed_model_ends_and_its_request_is_told_so(rigs: Rigs, use: str) -> None:
    rig = rigs(fleet(a="serve a", b="serve b", use=f"{{use: {use}}}"))
    loading, other = rig.chat("a"), rig.chat("b")

    rig.reload(fleet(b="serve b", use=f"{{use: {use}}}"))

    assert loading.status == 404
    assert rig.children.latest.signals == ["TERM"]
    rig.goes()
    assert rig.running == ["b"]
    rig.ready()
    rig.upstream().answers()
    assert other.status == 200


def test_a_load_that_still_makes_room_goes_on(rigs: Rigs) -> None:
    rig = rigs()
    rig.warm("a")
    loading = rig.chat("b")
    assert rig.children.latest.signals == ["TERM"]

    rig.reload(fleet(b="serve b"))
    rig.goes()
    rig.ready()
    rig.upstream().answers()

    assert loading.status == 200
    assert rig.running == ["b"]


def test_a_load_that_nobody_waits_for_any_more_is_not_begun_twice(rigs: Rigs) -> None:
    rig = rigs()
    rig.chat("a").leaves()

    rig.reload(fleet(a="serve a", b="serve b --new"))
    asked = rig.chat("a")
    rig.ready()
    rig.upstream().answers()

    assert asked.status == 200
    assert len(rig.children.started) == 1


@pytest.mark.parametrize("use", ["serial", "fifo"])
@pytest.mark.parametrize("router", ["groups", "matrix"])
def test_a_load_beside_a_model_that_may_be_there_no_longer_sees_it_stopped(
    rigs: Rigs, use: str, router: str
) -> None:
    beside, apart = {
        "groups": (SIDE_BY_SIDE, ""),
        "matrix": ("matrix: {sets: {all: a & b}}", "matrix: {sets: {one: a | b}}"),
    }[router]
    rig = rigs(fleet(a="serve a", b="serve b", use=f"{{use: {use}}}", more=beside))
    rig.warm("a")
    first = rig.children.latest
    loading = rig.chat("b")
    assert first.signals == []

    rig.reload(fleet(a="serve a", b="serve b", use=f"{{use: {use}}}", more=apart))
    assert first.signals == ["TERM"]
    first.exits(0)
    rig.ready()
    rig.upstream().answers()

    assert loading.status == 200
    assert rig.running == ["b"]
    assert len(rig.children.started) == 2


@pytest.mark.parametrize("use", ["serial", "fifo"])
@pytest.mark.parametrize("command", ["serve b", "serve b --new"])
def test_what_a_new_matrix_keeps_apart_is_apart_from_the_next_request_on(
    rigs: Rigs, use: str, command: str
) -> None:
    scheduler = f"{{use: {use}}}"
    rig = rigs(fleet(a="serve a", b="serve b", use=scheduler, more="matrix: {sets: {all: a & b}}"))
    rig.warm("a")
    upstream = rig.warm("b")
    rig.reload(fleet(a="serve a", b=command, use=scheduler, more="matrix: {sets: {one: a | b}}"))
    assert rig.running == ["a", "b"]

    asked = rig.chat("b")
    rig.goes()
    assert rig.running == [command.removeprefix("serve ")]
    rig.ready()
    (rig.upstream() if "--new" in command else upstream).answers()

    assert asked.status == 200


def test_a_load_that_nobody_waits_for_any_more_ends_where_it_would_stop_another(rigs: Rigs) -> None:
    rig = rigs(fleet(a="serve a", b="serve b", more=SIDE_BY_SIDE))
    rig.warm("a")
    rig.chat("b").leaves()

    rig.reload(BOTH)
    rig.goes()

    assert rig.running == ["a"]


def test_a_place_beside_a_job_is_taken_once_what_was_in_the_way_has_gone(rigs: Rigs) -> None:
    wide = "{use: serial, settings: {serial: {width: {b: 2}}}}"
    rig = rigs(fleet(a="serve a", b="serve b", use=wide, more=SIDE_BY_SIDE))
    rig.warm("a")
    first = rig.warm("b")
    rig.chat("b")
    rig.reload(fleet(b="serve b", use=wide))
    asked = rig.chat("b")
    assert first.line == "POST /v1/chat/completions"
    assert (rig.running, len(rig.reactor.tcpClients)) == (["a", "b"], 2)

    rig.goes()
    assert rig.running == ["b"]
    rig.upstream().answers()

    assert asked.status == 200


def test_a_protected_model_is_loaded_to_the_end_beside_others_when_its_client_leaves(rigs: Rigs) -> None:
    rig = rigs(fleet(a="serve a", b="serve b", use="{use: fifo}", more=SIDE_BY_SIDE))
    served = rig.warm("a")
    beside = rig.chat("a")
    loading = rig.chat("b")
    rig.reload(fleet(a="serve a", b="serve b, protected: true", more=SIDE_BY_SIDE))

    loading.leaves()
    rig.goes()
    rig.ready()
    served.answers()

    assert beside.status == 200
    assert rig.running == ["a", "b"]
    assert rig.service.engine.states() == {"a": "ready", "b": "ready"}


# The queue.


def test_who_waits_keeps_place_and_arrival(rigs: Rigs) -> None:
    rig = rigs()
    upstream = rig.warm("a")
    rig.chat("a")
    first, second = rig.chat("a"), rig.chat("a")
    rig.reactor.advance(2.0)

    rig.reload(fleet(a="serve a"))
    third = rig.chat("a")
    for asked in (first, second, third):
        assert asked.waits
        upstream.answers()
    upstream.answers()

    waits = [row.metadata["serial_queue_wait_ms"] for row in rig.rows[1:]]
    assert waits == ["0", "2000", "2000", "0"]


def test_another_affinity_reorders_who_waits_already(rigs: Rigs) -> None:
    rig = rigs(
        fleet(a="serve a", b="serve b", use="{use: serial, settings: {serial: {swapAffinityBonus: 0}}}")
    )
    upstream = rig.warm("a")
    rig.chat("a")
    other, same = rig.chat("b"), rig.chat("a")

    rig.reload(BOTH)
    upstream.answers()
    upstream.answers()

    assert same.status == 200
    assert other.waits


def test_from_serial_to_fifo_those_who_may_run_side_by_side_go_at_once(rigs: Rigs) -> None:
    rig = rigs(fleet(a="serve a", b="serve b", more=SIDE_BY_SIDE))
    upstream = rig.warm("a")
    first, second, other = rig.chat("a"), rig.chat("a"), rig.chat("b")

    rig.reload(fleet(a="serve a", b="serve b", more=SIDE_BY_SIDE, use="{use: fifo}"))

    assert rig.running == ["a", "b"]
    rig.upstream().answers()
    upstream.answers()
    rig.ready()
    rig.upstream().answers()
    assert [asked.status for asked in (first, second, other)] == [200, 200, 200]


def test_from_fifo_to_serial_the_next_one_waits_for_all_who_run_side_by_side(rigs: Rigs) -> None:
    rig = rigs(fleet(a="serve a", b="serve b", more=SIDE_BY_SIDE, use="{use: fifo}"))
    of_a, of_b = rig.warm("a"), rig.warm("b")
    first, other = rig.chat("a"), rig.chat("b")

    rig.reload(fleet(a="serve a", b="serve b", more=SIDE_BY_SIDE))
    third = rig.chat("a")
    of_a.answers()
    assert (first.status, third.waits, of_a.heard) == (200, True, b"")
    of_b.answers()
    of_a.answers()

    assert (other.status, third.status) == (200, 200)
    assert "fifo_priority" in rig.rows[2].metadata
    assert "serial_score" in rig.rows[-1].metadata


def test_a_limit_that_shrinks_refuses_nobody_who_waits_already(rigs: Rigs) -> None:
    rig = rigs()
    upstream = rig.warm("a")
    running, waiting = rig.chat("a"), rig.chat("a")

    rig.reload(fleet(a="serve a, concurrencyLimit: 1"))

    assert rig.chat("a").status == 429
    upstream.answers()
    upstream.answers()
    assert (running.status, waiting.status) == (200, 200)


# A request that arrived before the reload and is complete only after it.


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/upstream/a/v1/chat/completions"])
def test_a_request_whose_body_comes_when_its_model_is_gone_is_told_so(rigs: Rigs, path: str) -> None:
    rig = rigs(fleet(a="serve a, sendLoadingState: true", b="serve b"))
    asked = half_sent(rig, path, "a")

    rig.reload(fleet(b="serve b"))
    the_rest(asked)

    assert asked.status == 404
    assert [row.resp_status_code for row in rig.rows] == [404]


@pytest.mark.parametrize("strategy", ["warm", "spillover"])
def test_and_so_is_one_whose_selector_chose_a_model_that_is_gone(rigs: Rigs, strategy: str) -> None:
    selectors = f"selectors: {{any: {{strategy: {strategy}, targets: [a, b]}}}}\n{SIDE_BY_SIDE}"
    rig = rigs(fleet(a="serve a", b="serve b", more=selectors))
    asked = half_sent(rig, "/v1/chat/completions", "any")

    rig.reload(fleet(b="serve b"))
    the_rest(asked)

    assert asked.status == 404


def test_a_websocket_that_its_model_ignores_finds_it_gone(rigs: Rigs) -> None:
    rig = rigs(fleet(a="serve a, compat: {ignoreWebsockets: true}", b="serve b"))
    asked = half_sent(rig, "/upstream/a/ws", "a", "Connection: Upgrade\r\nUpgrade: websocket\r\n")

    rig.reload(fleet(b="serve b"))
    the_rest(asked)

    assert asked.status in (404, 409)


# Reloads that come at odd moments.


def test_two_reloads_in_a_row_are_one(rigs: Rigs) -> None:
    rig = rigs()
    upstream = rig.warm("a")
    running, waiting = rig.chat("a"), rig.chat("b")

    rig.reload(fleet(a="serve a --one", b="serve b --one"))
    rig.reload(fleet(a="serve a --two", b="serve b --two"))
    upstream.answers()
    rig.goes()

    assert running.status == 200
    assert rig.running == ["b --two"]
    rig.ready()
    rig.upstream().answers()
    assert waiting.status == 200


def test_a_model_that_changes_again_while_it_stops_comes_back_as_the_last_one(rigs: Rigs) -> None:
    rig = rigs()
    rig.warm("a")

    rig.reload(fleet(a="serve a --one", b="serve b"))
    asked = rig.chat("a")
    rig.reload(fleet(a="serve a --two", b="serve b"))
    rig.goes()
    assert rig.running == ["a --two"]
    rig.ready()
    rig.upstream().answers()

    assert asked.status == 200


def test_a_model_that_is_removed_while_it_stops_can_be_stopped_again(rigs: Rigs) -> None:
    rig = rigs()
    rig.warm("a")
    unloading = rig.ask("GET /unload")

    rig.reload(fleet(b="serve b"))
    rig.goes()

    assert unloading.status == 200
    assert rig.service.engine.states() == {"b": "stopped"}


@pytest.mark.parametrize("use", ["serial", "fifo"])
def test_a_request_whose_body_comes_while_its_removed_model_still_serves_is_told_so(
    rigs: Rigs, use: str
) -> None:
    rig = rigs(fleet(a="serve a", b="serve b", use=f"{{use: {use}}}"))
    upstream = rig.warm("a")
    running, late = rig.chat("a"), half_sent(rig, "/v1/chat/completions", "a")

    rig.reload(fleet(b="serve b", use=f"{{use: {use}}}"))
    the_rest(late)

    assert late.status == 404
    upstream.answers()
    assert running.status == 200
    assert rig.service.engine.when_idle().called


def test_a_removed_model_that_is_starting_again_after_a_crash_stops_at_once(rigs: Rigs) -> None:
    """Its first request has not noticed the crash yet, and is no reason to let the new child live."""
    rig = rigs(fleet(a="serve a", b="serve b", use="{use: fifo}"))
    upstream = rig.warm("a")
    running = rig.chat("a")
    upstream.begins(b"data: 1\n\n")
    rig.children.latest.is_killed()
    again = rig.chat("a")
    assert len(rig.children.started) == 2

    rig.reload(fleet(b="serve b", use="{use: fifo}"))

    assert again.status == 404
    assert rig.children.latest.signals == ["TERM"]
    rig.goes()
    upstream.dies()
    assert running.end.is_aborted()
    assert rig.running == []
