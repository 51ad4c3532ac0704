"""What callers of a model, its server and the guest book see of one inference call."""

from __future__ import annotations

import json

import pytest
from twisted.internet.error import ConnectionRefusedError as Refused

from llamaswap.metering.usage import Usage
from support.web_daemon import CLIENT, WebDaemon

CHAT = "/v1/chat/completions"


def test_a_call_loads_its_model_and_gets_its_answer_as_it_came() -> None:
    daemon = WebDaemon()
    asked = daemon.post(CHAT, {"model": "a", "stream": False}, X_LlamaSwap_Priority="batch")
    assert daemon.running == ["a"]
    daemon.reactor.advance(0.5)
    daemon.ready()
    upstream = daemon.upstream()

    assert upstream.line == f"POST {CHAT}"
    assert upstream.body == b'{"model": "a", "stream": false}'
    assert ("X-LlamaSwap-Priority", "batch") in upstream.fields
    assert ("X-Forwarded-For", CLIENT) in upstream.fields
    upstream.answers(b'{"usage": {"prompt_tokens": 3, "completion_tokens": 4}}', more="X-Of-Its-Own: yes\r\n")

    assert asked.status == 200
    assert asked.json["usage"]["prompt_tokens"] == 3
    assert asked.headers["x-of-its-own"] == "yes"
    (row,) = daemon.rows
    assert (row.model, row.req_path, row.resp_status_code) == ("a", CHAT, 200)
    assert (row.resp_content_type, row.error_msg) == ("application/json", "")
    assert (row.usage.input_tokens, row.usage.output_tokens) == (3, 4)
    assert row.duration_ms == 500
    assert row.metadata == {
        "serial_priority": "-100",
        "serial_band": "batch",
        "serial_score": "-100",
        "serial_queue_wait_ms": "0",
        "serial_load_ms": "500",
    }


def test_a_waiting_call_says_how_long_it_waited_and_that_it_needed_no_load() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()
    daemon.chat()
    waiting = daemon.chat(X_LlamaSwap_Priority="interactive")
    daemon.reactor.advance(1.5)
    upstream.answers()

    upstream.answers()

    assert waiting.status == 200
    assert daemon.rows[1].metadata == {
        "serial_priority": "100",
        "serial_band": "interactive",
        "serial_score": "110.025",
        "serial_queue_wait_ms": "1500",
        "serial_load_ms": "0",
    }


def test_an_alias_stands_for_its_model() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm("a")

    asked = daemon.chat("alpha")
    assert upstream.body == b'{"model": "alpha"}'
    upstream.answers()

    assert asked.status == 200
    assert daemon.rows[0].model == "a"


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/v/chat/completions", "/chat/completions"),
        ("/v/messages/count_tokens", "/messages/count_tokens"),
        ("/audioapi/v1/tasks/run", "/v1/tasks/run"),
        ("/v1/messages?beta=true", "/v1/messages?beta=true"),
    ],
)
def test_the_upstream_sees_the_path_without_our_prefix(path: str, seen: str) -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()

    asked = daemon.post(path, {"model": "a"})
    assert upstream.line == f"POST {seen}"
    upstream.answers()

    assert asked.status == 200
    assert daemon.rows[0].req_path == seen.partition("?")[0]


def test_an_absolute_target_is_sent_on_as_a_path() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()

    daemon.post(f"http://box.example{CHAT}?x=1", {"model": "a"})

    assert upstream.line == f"POST {CHAT}?x=1"
    upstream.answers()
    assert daemon.rows[0].req_path == CHAT


def test_a_get_names_its_model_in_the_query_and_leaves_no_row() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()

    asked = daemon.get("/props?bad=%zz&model=a")
    assert upstream.line == "GET /props?bad=%zz&model=a"
    upstream.answers(b'{"n_ctx": 1}')

    assert asked.json == {"n_ctx": 1}
    assert daemon.rows == []


def test_a_head_is_asked_as_a_head() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()

    asked = daemon.request("HEAD", "/props?model=a")
    assert upstream.line == "HEAD /props?model=a"
    upstream.end.send(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n")

    assert asked.status == 200
    assert asked.body == b""


def test_a_call_that_counts_passes_the_queue_of_its_resident_model() -> None:
    daemon = WebDaemon()
    daemon.warm()
    running = daemon.chat()

    asked = daemon.post("/v1/messages/count_tokens", {"model": "a"})
    daemon.upstream().answers(b'{"input_tokens": 5}')

    assert asked.status == 200
    assert running.waits
    assert daemon.rows[0].metadata == {}


# Refusals.


def test_a_call_without_a_model_is_refused_and_leaves_no_row() -> None:
    daemon = WebDaemon()

    asked = daemon.post(CHAT, {"messages": []})

    assert asked.status == 404
    assert asked.message == "no model id could be identified"
    assert daemon.rows == []


def test_a_call_for_an_unknown_model_leaves_a_row_under_the_name_that_it_used() -> None:
    daemon = WebDaemon()

    asked = daemon.chat("ghost/x")

    assert asked.status == 404
    assert asked.json == {
        "src": "llama-swap",
        "error": {
            "message": "no router for requested model",
            "type": "invalid_request_error",
            "param": None,
            "code": "not_found",
        },
    }
    (row,) = daemon.rows
    assert (row.model, row.resp_status_code) == ("ghost/x", 404)
    assert row.error_msg == "no router for requested model"
    assert row.resp_content_type == "application/json"
    assert daemon.metric('llamaswap_requests_total{code="404",model="unknown"}') == 1
    assert b"ghost" not in daemon.get("/metrics").body


@pytest.mark.parametrize("name", ["\ud800", "x" * 100_000, "a\nb\x1b[2J", "a\x00b"])
def test_the_oddest_names_are_only_unknown(name: str) -> None:
    daemon = WebDaemon()

    assert daemon.chat(name).status == 404

    assert daemon.get("/api/metrics/activity").json["total"] == 1
    assert daemon.get("/health").status == 200


@pytest.mark.parametrize(
    "value", ["", "high", "100.0", "1e9", "1_000", "٣", "NaN", "0x10", "9" * 400, "9" * 5000, "\u00ff"]
)
def test_a_priority_that_means_nothing_counts_as_none_and_is_counted(value: str) -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()

    asked = daemon.chat(X_LlamaSwap_Priority=value)
    upstream.answers()

    assert asked.status == 200
    assert daemon.rows[0].metadata["serial_priority"] == "0"
    assert daemon.metric("llamaswap_scheduler_unparseable_priorities_total") == 1


def test_of_two_priorities_the_first_counts() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()

    daemon.request(
        "POST",
        CHAT,
        headers=[("x-llamaswap-priority", " Batch "), ("X-LlamaSwap-Priority", "100")],
        body=b'{"model": "a"}',
    )
    upstream.answers()

    assert daemon.rows[0].metadata["serial_priority"] == "-100"


def test_too_many_calls_of_a_limited_model_are_told_so_in_json_whatever_they_accept() -> None:
    daemon = WebDaemon("""
        routing: {scheduler: {use: serial}}
        models: {a: {cmd: serve a, proxy: "http://127.0.0.1:9001", concurrencyLimit: 1}}
    """)
    daemon.chat()

    asked = daemon.chat(Accept="text/plain")

    assert asked.status == 429
    assert asked.headers["retry-after"] == "1"
    assert asked.headers["content-type"] == "application/json"
    assert asked.json["error"]["code"] == "concurrency_limit"
    assert daemon.rows[0].resp_status_code == 429


def test_a_failed_load_is_an_answer_with_the_childs_last_words_and_a_row_of_its_dispatch() -> None:
    daemon = WebDaemon()
    asked = daemon.chat(X_LlamaSwap_Priority="2")
    daemon.child.says("no such file: model.gguf")
    daemon.reactor.advance(0.25)

    daemon.child.exits(1)

    assert asked.status == 500
    assert "no such file: model.gguf" in asked.message
    (row,) = daemon.rows
    assert row.resp_status_code == 500
    assert "no such file: model.gguf" in row.error_msg
    assert row.metadata == {
        "serial_priority": "2",
        "serial_band": "normal",
        "serial_score": "2",
        "serial_queue_wait_ms": "0",
        "serial_load_ms": "250",
    }


def test_a_refused_connection_is_a_502_with_an_envelope_and_a_row() -> None:
    daemon = WebDaemon()
    asked = daemon.chat()
    daemon.ready()

    daemon.refuses()

    assert asked.status == 502
    assert "upstream gave no answer" in asked.message
    (row,) = daemon.rows
    assert row.resp_status_code == 502
    assert "upstream gave no answer" in row.error_msg
    assert row.metadata["serial_score"] == "0"
    assert daemon.engine.when_idle().called


def test_an_upstream_error_passes_through_untouched_and_its_text_is_in_the_row() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()

    asked = daemon.chat()
    upstream.answers(b'{"error": {"message": "context too long"}}', "400 Bad Request")

    assert asked.status == 400
    assert asked.json == {"error": {"message": "context too long"}}
    assert (daemon.rows[0].resp_status_code, daemon.rows[0].error_msg) == (400, "context too long")


def test_under_fifo_a_row_has_the_sum_of_both_priorities_and_nothing_of_serial() -> None:
    daemon = WebDaemon("""
        routing: {scheduler: {use: fifo, settings: {fifo: {priority: {a: 10}}}}}
        models: {a: {cmd: serve a, proxy: "http://127.0.0.1:9001"}}
    """)
    upstream = daemon.warm()

    daemon.chat(X_LlamaSwap_Priority="batch")
    upstream.answers()

    assert daemon.rows[0].metadata == {"fifo_priority": "-90"}


# Clients and upstreams that leave.


def test_a_client_that_leaves_while_queued_leaves_a_row_that_says_so() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()
    daemon.chat()
    waiting = daemon.chat("b", X_LlamaSwap_Priority="-98")
    daemon.reactor.advance(12.25)

    waiting.leaves()

    (row,) = daemon.rows
    assert row.resp_status_code == 499
    assert "abandoned" in row.error_msg
    assert "queued" in row.error_msg
    assert row.metadata == {
        "serial_priority": "-98",
        "serial_band": "batch",
        "serial_queue_wait_ms": "12250",
    }
    assert row.usage == Usage()
    assert daemon.metric('llamaswap_scheduler_abandoned_total{band="batch"}') == 1
    upstream.answers()
    assert daemon.running == ["a"]


def test_a_client_that_leaves_while_its_model_loads_leaves_a_row_with_its_dispatch() -> None:
    daemon = WebDaemon()
    asked = daemon.chat()
    daemon.reactor.advance(0.75)

    asked.leaves()

    (row,) = daemon.rows
    assert row.resp_status_code == 499
    assert "loading" in row.error_msg
    assert row.metadata["serial_score"] == "0"
    assert row.metadata["serial_queue_wait_ms"] == "0"
    assert row.metadata["serial_load_ms"] == "750"


def test_a_client_that_leaves_before_the_answer_closes_the_upstream_connection() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()
    asked = daemon.chat()
    waiting = daemon.chat()

    asked.leaves()

    assert upstream.end.is_aborted()
    (row,) = daemon.rows
    assert row.resp_status_code == 499
    assert "client" in row.error_msg
    assert row.metadata["serial_load_ms"] == "0"
    daemon.upstream().answers()
    assert waiting.status == 200


def test_a_client_that_leaves_in_the_middle_leaves_a_row_with_what_was_answered() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()
    asked = daemon.chat()
    upstream.begins(b"data: 1\n\n")
    assert asked.status == 200

    asked.leaves()

    assert upstream.end.is_aborted()
    (row,) = daemon.rows
    assert row.resp_status_code == 200
    assert "client left" in row.error_msg


def test_a_model_that_cannot_be_interrupted_keeps_the_box_until_it_is_done() -> None:
    daemon = WebDaemon("""
        routing: {scheduler: {use: serial}}
        models:
          a: {cmd: serve a, proxy: "http://127.0.0.1:9001", compat: {drainOnDisconnect: true}}
    """)
    upstream = daemon.warm()
    asked = daemon.chat()
    waiting = daemon.chat()

    asked.leaves()
    assert not upstream.end.is_aborted()
    assert daemon.rows == []
    upstream.answers(b'{"usage": {"prompt_tokens": 3}}')

    assert "client left" in daemon.rows[0].error_msg
    assert daemon.rows[0].usage.input_tokens == 3
    upstream.answers()
    assert waiting.status == 200


def test_a_stream_that_only_looks_ends_with_its_client_whatever_the_model() -> None:
    """A page of such a model may hold one open for as long as it is shown."""
    daemon = WebDaemon("""
        routing: {scheduler: {use: serial}}
        models:
          a: {cmd: serve a, proxy: "http://127.0.0.1:9001", compat: {drainOnDisconnect: true}}
    """)
    asked = daemon.get("/upstream/a/heartbeat")
    daemon.goes()
    daemon.ready()
    upstream = daemon.upstream()
    upstream.begins(b"data: ALIVE\n\n")

    asked.leaves()

    assert upstream.end.is_aborted()


def test_an_upstream_that_dies_in_the_middle_cuts_the_client_off_and_the_row_says_so() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()
    asked = daemon.chat()
    upstream.begins(b"data: 1\n\n")

    upstream.dies()

    assert asked.end.is_aborted()
    assert asked.pieces == [b"data: 1\n\n"]
    (row,) = daemon.rows
    assert row.resp_status_code == 200
    assert "upstream died" in row.error_msg


def test_a_child_that_crashes_before_it_has_answered_is_started_again_and_asked_again() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()
    asked = daemon.chat()
    waiting = daemon.chat()

    daemon.child.is_killed()
    upstream.dies()
    daemon.reactor.refuse(Refused())  # the kept connection might have been stale, so it was tried again
    daemon.ready()
    upstream = daemon.upstream()
    upstream.answers()
    upstream.answers()

    assert (asked.status, waiting.status) == (200, 200)
    assert len(daemon.children.started) == 2
    assert daemon.metric('llamaswap_swaps_total{model="a"}') == 2


def test_a_child_that_crashes_and_cannot_be_started_again_is_a_failed_load() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()
    asked = daemon.chat()
    daemon.child.is_killed()
    upstream.dies()

    daemon.reactor.refuse(Refused())
    daemon.child.exits(1)

    assert asked.status == 500
    assert daemon.engine.when_idle().called


def test_only_a_job_may_start_a_server_again() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()
    asked = daemon.get("/props?model=a")
    daemon.child.is_killed()
    upstream.dies()

    daemon.reactor.refuse(Refused())

    assert asked.status == 502
    assert len(daemon.children.started) == 1


def test_the_box_is_free_when_the_upstream_is_done_although_the_client_is_slow() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()
    slow = daemon.chat()
    quick = daemon.chat()
    slow.end.stall()
    upstream.answers(b'{"x": "%b"}' % (b"y" * 300_000))

    upstream.answers()

    assert quick.status == 200
    slow.end.go_on()
    assert len(slow.json["x"]) == 300_000


def test_an_event_stream_is_marked_as_not_to_be_buffered_and_passes_chunk_by_chunk() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()
    asked = daemon.chat()

    upstream.begins(b"data: 1\n\n")
    assert asked.pieces == [b"data: 1\n\n"]
    assert asked.headers["x-accel-buffering"] == "no"
    upstream.goes_on(b"data: [DONE]\n\n", b"")

    assert asked.pieces == [b"data: 1\n\n", b"data: [DONE]\n\n", b""]


def test_an_upgrade_becomes_a_tunnel_both_ways() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()
    asked = daemon.request(
        "GET",
        "/upstream/a/ws",
        headers={"Connection": "keep-alive, Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "k"},
    )
    assert ("Upgrade", "websocket") in upstream.fields
    assert ("Connection", "Upgrade") in upstream.fields
    upstream.end.send(
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    )

    assert asked.status == 101
    asked.end.send(b"ping")
    assert upstream.heard.endswith(b"ping")
    upstream.end.send(b"pong")
    assert asked.raw.endswith(b"pong")


def test_a_chunked_request_reaches_the_upstream_chunked() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()
    asked = daemon.connect()

    asked.send(
        b"POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
        b'Transfer-Encoding: chunked\r\n\r\n9\r\n{"model":\r\n4\r\n"a"}\r\n0\r\n\r\n'
    )  # fmt: skip

    assert ("Transfer-Encoding", "chunked") in upstream.fields
    assert upstream.body == b'9\r\n{"model":\r\n4\r\n"a"}\r\n0\r\n\r\n'
    upstream.answers()


def test_a_client_of_http_1_0_without_a_host_does_not_make_us_break_http_1_1() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()
    body = json.dumps({"model": "a"}).encode()

    daemon.connect().send(
        b"POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
        % (len(body), body)
    )

    assert ("Host", "127.0.0.1:9001") in upstream.fields
    upstream.answers()


# The queue as a whole.


def test_a_request_whose_client_left_the_queue_never_reaches_an_upstream() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()
    running = daemon.chat()
    waiting = [daemon.chat() for _ in range(3)]

    waiting[1].leaves()
    for _ in range(3):
        upstream.answers()

    assert running.status == waiting[0].status == waiting[2].status == 200
    assert [row.resp_status_code for row in daemon.rows] == [499, 200, 200, 200]
    assert upstream.heard == b""


def test_five_hundred_clients_that_leave_the_queue_start_nothing_and_keep_nobody_waiting() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm("a")
    daemon.chat("a")
    crowd = [daemon.chat("b") for _ in range(500)]
    late = daemon.chat("a")

    for client in crowd:
        client.leaves()
    upstream.answers()
    upstream.answers()

    assert late.status == 200
    assert len(daemon.children.started) == 1
    assert daemon.engine.when_idle().called


def test_the_metrics_of_a_busy_queue_tell_the_truth_in_the_end() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm("a")
    priorities = ["50", "-98", "2", "1000000", "batch"] * 10
    clients = [daemon.chat(X_LlamaSwap_Priority=priority) for priority in priorities]
    for client in clients[1::3]:
        client.leaves()
    left = len(clients[1::3])

    for _ in range(len(clients) - left):
        upstream.answers()

    answered = [client for client in clients if not client.waits]
    assert len(answered) == len(clients) - left
    for band in ("interactive", "normal", "batch"):
        assert daemon.metric(f'llamaswap_scheduler_queue_depth{{band="{band}"}}') == 0
        assert daemon.metric(f'llamaswap_scheduler_queue_oldest_wait_seconds{{band="{band}"}}') == 0
    dispatched = [row for row in daemon.rows if "serial_score" in row.metadata]
    abandoned = [row for row in daemon.rows if row.resp_status_code == 499]
    assert (len(dispatched), len(abandoned)) == (len(clients) - left, left)
    for band in ("interactive", "normal", "batch"):
        rows = [row for row in dispatched if row.metadata["serial_band"] == band]
        warm_up = 1 if band == "normal" else 0
        counted = daemon.metric(f'llamaswap_scheduler_dispatched_total{{band="{band}"}}')
        assert counted == len(rows) + warm_up
        gone = [row for row in abandoned if row.metadata["serial_band"] == band]
        assert daemon.metric(f'llamaswap_scheduler_abandoned_total{{band="{band}"}}') == len(gone)
