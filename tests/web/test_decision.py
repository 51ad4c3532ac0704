"""What a response's head says of the queue."""

from __future__ import annotations

import pytest

from llamaswap.web.decision import NAMES
from support.web_daemon import TWO_MODELS, WebDaemon
from support.web_talk import Talk

FIFO = TWO_MODELS.replace("use: serial", "use: fifo")


def told(asked: Talk) -> dict[str, str]:
    """The four fields, without what they have in common."""
    ours = {name.encode(): value for name, value in asked.headers.items() if name.encode() in NAMES}
    return {name.decode().removeprefix("x-llamaswap-"): value for name, value in ours.items()}


def test_an_answer_says_how_long_it_waited_and_loaded_and_why_it_went() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm("a")
    daemon.chat("a")
    asked = daemon.chat("b", X_LlamaSwap_Priority="interactive")
    daemon.reactor.advance(1.25)
    upstream.answers()
    daemon.goes()
    daemon.reactor.advance(2.5)
    daemon.ready()

    daemon.upstream().answers()

    assert told(asked) == {"queue-ms": "1250", "load-ms": "2500", "score": "100.021", "band": "interactive"}
    row = daemon.rows[-1].metadata
    assert (row["serial_queue_wait_ms"], row["serial_load_ms"], row["serial_score"]) == (
        "1250",
        "2500",
        "100.021",
    )


def test_a_request_that_goes_at_once_says_so() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()

    asked = daemon.chat()
    upstream.answers()

    assert told(asked) == {"queue-ms": "0", "load-ms": "0", "score": "10", "band": "normal"}
    assert asked.raw.count(b"X-LlamaSwap-") == 4


def test_a_streamed_answer_says_it_too() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()

    asked = daemon.chat()
    upstream.begins(b"data: 1\n\n")

    assert told(asked)["band"] == "normal"


def test_under_fifo_nothing_is_said_and_a_servers_own_fields_pass() -> None:
    daemon = WebDaemon(FIFO)
    upstream = daemon.warm()

    asked = daemon.chat()
    upstream.answers(more="X-LlamaSwap-Score: 7\r\n")

    assert told(asked) == {"score": "7"}


def test_ours_take_the_place_of_a_servers_own() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()

    asked = daemon.chat()
    upstream.answers(more="x-llamaswap-score: 7\r\nX-LlamaSwap-Other: 1\r\n")

    assert told(asked)["score"] == "10"
    assert asked.raw.lower().count(b"x-llamaswap-score") == 1
    assert asked.headers["x-llamaswap-other"] == "1"


def test_the_same_answer_to_who_passes_the_queue_keeps_the_servers_own() -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()
    asked = daemon.chat()
    upstream.answers(more="X-LlamaSwap-Score: 7\r\n")
    assert told(asked)["score"] == "10"

    looks = daemon.get("/upstream/a/slots")
    upstream.answers(more="X-LlamaSwap-Score: 7\r\n")

    assert told(looks) == {"score": "7"}


def test_a_peers_answer_keeps_its_own() -> None:
    daemon = WebDaemon("""
        routing: {scheduler: {use: serial}}
        peers: {box: {proxy: "http://127.0.0.1:9009", models: [far]}}
    """)

    asked = daemon.chat("far")
    daemon.upstream().answers(more="X-LlamaSwap-Queue-Ms: 7\r\n")

    assert told(asked) == {"queue-ms": "7"}


def test_an_error_after_the_dispatch_says_it() -> None:
    daemon = WebDaemon()
    asked = daemon.chat()
    daemon.reactor.advance(0.5)
    daemon.ready()

    daemon.refuses()

    assert asked.status == 502
    assert told(asked) == {"queue-ms": "0", "load-ms": "500", "score": "0", "band": "normal"}


def test_a_load_that_failed_says_how_long_it_took() -> None:
    daemon = WebDaemon()
    asked = daemon.chat(X_LlamaSwap_Priority="batch")
    daemon.reactor.advance(1.5)

    daemon.child.exits(1)

    assert asked.status == 500
    assert told(asked) == {"queue-ms": "0", "load-ms": "1500", "score": "-100", "band": "batch"}


@pytest.mark.parametrize("model", ["a", "nobody"])
def test_who_was_never_dispatched_is_told_nothing(model: str) -> None:
    daemon = WebDaemon()
    daemon.warm("b")
    daemon.chat("b")
    asked = daemon.chat(model)

    daemon.close()

    assert asked.status in (404, 503)
    assert told(asked) == {}
