"""What happens to the models that shall be loaded at start."""

from __future__ import annotations

from twisted.internet.error import ConnectionRefusedError as Refused

from llamaswap.greeting import GREETING_SECONDS
from support.dispatch_rig import nothing_goes_wrong
from support.web_daemon import WebDaemon
from support.web_talk import Upstream

PRELOADED = """
    routing: {scheduler: {use: serial}}
    hooks: {on_startup: {preload: [b, a]}}
    models:
      a: {cmd: serve a, proxy: "http://127.0.0.1:9001"}
      b: {cmd: serve b, proxy: "http://127.0.0.1:9002/pre"}
"""

SIDE_BY_SIDE = """
    groups: {all: {swap: false, members: [a, b, c]}}
    hooks: {on_startup: {preload: [b, a, c]}}
    models:
      a: {cmd: serve a, proxy: "http://127.0.0.1:9001"}
      b: {cmd: serve b, proxy: "http://127.0.0.1:9002"}
      c: {cmd: serve c, proxy: "http://127.0.0.1:9003"}
"""


def greeted(daemon: WebDaemon) -> Upstream:
    """The model that has just become ready, as the preload talks to it."""
    daemon.ready()
    return daemon.upstream()


def test_models_are_loaded_in_list_order_and_greeted_once() -> None:
    daemon = WebDaemon(PRELOADED)
    daemon.preload()
    assert daemon.running == ["b"]

    upstream = greeted(daemon)
    assert upstream.line == "GET /pre/"
    assert daemon.running == ["b"]
    upstream.answers(b"hello")

    daemon.goes()
    assert daemon.running == ["a"]
    upstream = greeted(daemon)
    assert upstream.line == "GET /"
    upstream.answers(b"not here", "404 Not Found")
    assert daemon.engine.when_idle().called
    assert daemon.rows == []


def test_a_preload_waits_like_a_normal_request() -> None:
    daemon = WebDaemon(PRELOADED)
    daemon.preload()
    urgent = daemon.chat("a", X_LlamaSwap_Priority="1")

    greeted(daemon).answers(b"")
    daemon.goes()
    daemon.ready()
    daemon.upstream().answers()

    assert urgent.status == 200
    assert daemon.metric('llamaswap_scheduler_dispatched_total{band="normal"}') == 3


def test_a_model_that_does_not_load_does_not_keep_the_next_one_from_loading() -> None:
    daemon = WebDaemon(PRELOADED)
    with nothing_goes_wrong():
        daemon.preload()
        daemon.child.exits(1)

    assert daemon.running == ["a"]


def test_a_model_that_does_not_answer_the_greeting_stays_loaded() -> None:
    daemon = WebDaemon(PRELOADED)
    with nothing_goes_wrong():
        daemon.preload()
        greeted(daemon)
        daemon.reactor.pump([1.0] * 11)
        assert daemon.child.signals == ["TERM"]
        daemon.goes()

    assert daemon.running == ["a"]


def test_a_model_that_refuses_the_greeting_frees_the_box() -> None:
    daemon = WebDaemon(PRELOADED)
    with nothing_goes_wrong():
        daemon.preload()
        daemon.ready()
        daemon.reactor.refuse(Refused())
        daemon.reactor.advance(1.0)  # it would be tried at other addresses, had the name more of them
        daemon.goes()

    assert daemon.running == ["a"]


def test_a_model_that_breaks_the_greeting_off_frees_the_box() -> None:
    daemon = WebDaemon(PRELOADED)
    with nothing_goes_wrong():
        daemon.preload()
        greeted(daemon).dies()
        daemon.goes()

    assert daemon.running == ["a"]


def test_a_greeting_whose_answer_breaks_off_frees_the_box() -> None:
    daemon = WebDaemon(PRELOADED)
    with nothing_goes_wrong():
        daemon.preload()
        upstream = greeted(daemon)
        upstream.begins(b"half", kind="text/html")
        upstream.dies()
        daemon.goes()

    assert daemon.running == ["a"]


def test_a_stop_ends_preloads_without_a_word() -> None:
    daemon = WebDaemon(PRELOADED)
    with nothing_goes_wrong():
        daemon.preload()
        daemon.close()
        ended = daemon.end()
        daemon.goes()

    assert ended.called
    assert daemon.running == []


def test_case_023_where_jobs_run_side_by_side_each_preload_waits_for_the_one_before_it() -> None:
    daemon = WebDaemon(SIDE_BY_SIDE)
    with nothing_goes_wrong():
        daemon.preloads.begin(daemon.config.preload, in_turn=True)
        assert daemon.running == ["b"]

        greeted(daemon).answers(b"hello")
        assert daemon.running == ["b", "a"]
        daemon.child.exits(1)
        assert daemon.running == ["b", "c"]
        daemon.preloads.end()


def test_a_model_that_takes_no_connection_does_not_keep_the_others_from_being_loaded() -> None:
    with nothing_goes_wrong():
        daemon = WebDaemon(SIDE_BY_SIDE)
        daemon.preloads.begin(["b", "a"], in_turn=True)
        daemon.ready()
        daemon.reactor.advance(GREETING_SECONDS)
        daemon.ready()
        assert daemon.running == ["b", "a"]


def test_a_model_whose_host_is_no_name_of_the_dns_does_not_keep_the_others_from_being_loaded() -> None:
    with nothing_goes_wrong():
        daemon = WebDaemon(SIDE_BY_SIDE.replace("127.0.0.1:9002", "llama_server:9002"))
        daemon.preloads.begin(["b", "a"], in_turn=True)
        daemon.ready()
        assert daemon.running == ["b", "a"]
        daemon.preloads.end()


def test_a_stop_while_a_greeting_connects_is_no_failure() -> None:
    with nothing_goes_wrong():
        daemon = WebDaemon(SIDE_BY_SIDE)
        daemon.preloads.begin(["b", "a"], in_turn=True)
        daemon.ready()
        daemon.preloads.end()
        assert daemon.running == ["b"]
        assert daemon.engine.when_idle().called


def test_a_preload_that_somebody_sends_away_does_not_take_the_later_ones_along() -> None:
    with nothing_goes_wrong():
        daemon = WebDaemon(PRELOADED.replace("serial", "fifo"))
        daemon.chat("a")
        daemon.ready()
        daemon.preloads.begin(["b", "a"], in_turn=True)
        queueing = daemon.engine.dispatcher.queueing
        (row,) = queueing.queue().tickets

        queueing.cancel(row.ticket.number)

        queue = queueing.queue()
        assert queue.waiting == 0
        assert [job.ticket.model for job in queue.jobs] == ["a", "a"]
        daemon.preloads.end()
