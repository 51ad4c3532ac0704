"""What happens to the models that shall be loaded at start."""

from __future__ import annotations

from twisted.internet.error import ConnectionRefusedError as Refused

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
