"""Signs of life, and who gets them."""

from __future__ import annotations

import pytest

from llamaswap.config.model import KeepAliveConfig
from llamaswap.http1.heads import RequestHead
from llamaswap.web.early import DOCUMENT, EVENTS, NAMED_EVENTS
from llamaswap.web.keepalive import KeepAlive, comment, rhythm_of
from support.web_early import Waiting

BOTH = KeepAliveConfig(stream=15.0, json=30.0)


def head(method: str = "POST") -> RequestHead:
    """A request."""
    return RequestHead(method.encode(), b"/", (1, 1), ())


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/completions", "/v1/responses", "/infill", "/completion?a=/messages"]
)
def test_a_stream_of_text_gets_comments_and_a_whole_answer_white_space(path: str) -> None:
    target = path.encode()

    assert rhythm_of(BOTH, head(), target, stream=True) == (EVENTS, 15.0)
    assert rhythm_of(BOTH, head(), target, stream=False) == (DOCUMENT, 30.0)


def test_events_have_names_where_clients_go_by_them() -> None:
    target = b"/v1/messages?beta=true"

    assert rhythm_of(BOTH, head(), target, stream=True) == (NAMED_EVENTS, 15.0)
    assert rhythm_of(BOTH, head(), target, stream=False) == (DOCUMENT, 30.0)


@pytest.mark.parametrize("path", ["/v1/embeddings", "/rerank", "/v1/reranking", "/v1/messages/count_tokens"])
def test_what_is_computed_comes_as_one_document(path: str) -> None:
    assert rhythm_of(BOTH, head(), path.encode(), stream=False) == (DOCUMENT, 30.0)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/audio/speech",
        "/v1/audio/transcriptions",
        "/v1/images/generations",
        "/sdapi/v1/txt2img",
        "/v1/chat",
        "/v1/v1/completions",
        "/props",
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_what_may_be_no_text_is_left_alone(path: str, *, stream: bool) -> None:
    assert rhythm_of(BOTH, head(), path.encode(), stream=stream) is None


@pytest.mark.parametrize("stream", [True, False])
def test_other_methods_are_left_alone(*, stream: bool) -> None:
    for asked in (head("HEAD"), head("GET"), head("PUT")):
        assert rhythm_of(BOTH, asked, b"/v1/completions", stream=stream) is None


def test_each_kind_is_switched_on_by_itself() -> None:
    target = b"/v1/completions"

    assert rhythm_of(KeepAliveConfig(stream=1.0), head(), target, stream=False) is None
    assert rhythm_of(KeepAliveConfig(json=1.0), head(), target, stream=True) is None
    assert rhythm_of(KeepAliveConfig(json=1.0), head(), target, stream=False) == (DOCUMENT, 1.0)


def test_it_speaks_whenever_nobody_has_for_so_long() -> None:
    waiting = Waiting()
    KeepAlive(waiting.early, 5.0, waiting.clock, lambda: b": x\n\n")
    waiting.advance(4.9)
    assert waiting.client.take() == b""

    waiting.advance(0.2)
    assert waiting.told() == b": x\n\n"

    waiting.advance(10)
    assert waiting.told() == b": x\n\n: x\n\n"


def test_it_is_silent_while_somebody_else_speaks() -> None:
    waiting = Waiting()
    KeepAlive(waiting.early, 5.0, waiting.clock, lambda: b": x\n\n")
    for _ in range(5):
        waiting.advance(4)
        waiting.early.say(b"data: 1\n\n")
    assert b":x" not in waiting.told()

    waiting.advance(4.9)
    assert waiting.told() == b""
    waiting.advance(0.2)
    assert waiting.told() == b": x\n\n"


def test_it_asks_what_to_say_each_time() -> None:
    waiting, words = Waiting(), [b": 1\n\n", b": 2\n\n"]
    KeepAlive(waiting.early, 1.0, waiting.clock, lambda: words.pop(0))

    waiting.advance(2.1)

    assert waiting.told() == b": 1\n\n: 2\n\n"


def test_once_stopped_it_says_nothing_more() -> None:
    waiting = Waiting()
    alive = KeepAlive(waiting.early, 1.0, waiting.clock, lambda: b": x\n\n")
    waiting.advance(1.1)
    waiting.told()

    alive.stop()
    alive.stop()

    assert waiting.timers() == 0


def test_who_has_left_is_told_nothing() -> None:
    waiting = Waiting()
    KeepAlive(waiting.early, 1.0, waiting.clock, lambda: b": x\n\n")
    waiting.client.leave()

    waiting.advance(3)

    assert not waiting.early.begun


@pytest.mark.parametrize("name", ["qwen", "größe", "a\n\ndata: forged", "a\rb", "a\u2028b", "\ud83d"])
def test_a_comment_is_one_line_and_no_event(name: str) -> None:
    said = comment(f"loading {name}")

    assert said.startswith(b": loading ") and said.endswith(b"\n\n")
    assert len(said.decode().splitlines()) == 2


def test_it_can_be_stopped_while_it_speaks() -> None:
    waiting = Waiting()

    def words() -> bytes:
        alive.stop()
        return b": x\n\n"

    alive = KeepAlive(waiting.early, 1.0, waiting.clock, words)
    waiting.advance(1.1)

    assert waiting.told() == b": x\n\n"
    assert waiting.timers() == 0
