"""Cases from the field: event streams, what is said while a model loads, and boxes in the middle."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from openai import OpenAI

from support.field import Field, stub
from support.field_answers import DONE, expected
from support.field_call import CHAT, Call, request_for
from support.field_client import Client
from support.field_scale import Scale
from support.real_daemon_talk import Wire, request_bytes
from support.real_nginx import nginx_before

pytestmark = pytest.mark.integration

TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
STREAMS = (CHAT, "/v1/completions", "/completion", "/v1/messages", "/v1/responses", f"/upstream/quiet{CHAT}")
OWN_STREAMS = ("/api/events", "/logs/stream", "/logs/stream/proxy", "/logs/stream/quiet")


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    """Two models that evict each other and tell of their loads, and one that does not."""
    told = stub("--load 0.3", sendLoadingState=True)
    models = {"A": told, "B": told, "quiet": stub("--load 0.3")}
    with Field(tmp_path_factory.mktemp("streams"), models) as field:
        yield field


def cold(field: Field, **request: Any) -> Call:
    """Ask whichever of the two is not loaded."""
    model = "B" if "A" in field.running() else "A"
    return field.chat(model, **request)


def reasoning(call: Call) -> str:
    """What a stream said as reasoning."""
    deltas = [event["choices"][0]["delta"] for event in call.events if _has_delta(event)]
    return "".join(delta.get("reasoning_content", "") for delta in deltas)


def _has_delta(event: Any) -> bool:
    return isinstance(event, dict) and bool(event.get("choices")) and "delta" in event["choices"][0]


def assert_only_data(call: Call) -> None:
    """Assert that a stream has no comment, no empty data and no field but `data`."""
    lines = [line for line in call.body.decode().split("\n") if line]
    assert all(line.startswith("data: ") and line[6:].strip() for line in lines)


# --- headers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [None, "no", "yes"])
def test_case_066_a_relayed_event_stream_says_once_that_it_must_not_be_buffered(
    said: str | None, field: Field
) -> None:
    """`Cache-Control` is the model server's own, as with llama-swap: it passes, and none is added."""
    more = [] if said is None else [["X-Accel-Buffering", said], ["Cache-Control", "no-cache"]]
    for path in STREAMS:
        call = field.chat("quiet", stream=True, path=path, stub={"headers": more})
        assert call.wrong() == ""
        assert call.headers["x-accel-buffering"] == "no", path
        assert call.headers.get("cache-control") == (None if said is None else "no-cache"), path


def test_case_066_our_own_streams_say_once_that_they_must_be_neither_buffered_nor_kept(field: Field) -> None:
    streams = [field.visit(path) for path in OWN_STREAMS]
    field.together(streams)
    loading = field.send("B" if "A" in field.running() else "A", stream=True)
    for call in (*streams, loading):
        field.until(lambda call=call: call.status, "its head")  # type: ignore[misc]  # mypy cannot infer a lambda's default
        assert call.headers["x-accel-buffering"] == "no", call
        assert call.headers["cache-control"] == "no-cache", call
    assert loading.wait().wrong() == ""
    assert "loading model" in reasoning(loading)
    for call in streams:
        call.leave()


def test_case_066_what_comes_through_nginx_comes_when_it_was_sent(
    field: Field, tmp_path_factory: pytest.TempPathFactory, scale: Scale
) -> None:
    tokens, gap = scale(20, 5), 0.2
    with nginx_before(field.daemon.port, tmp_path_factory.mktemp("nginx")) as port:
        others = [Client(field.network, port, request_bytes("GET", path)) for path in OWN_STREAMS[:2]]
        for other in others:
            other.go()
        model = "B" if "A" in field.running() else "A"
        began = time.monotonic()
        with Wire(port) as loading:
            loading.send(field_request(model))
            loading.read_until(b"-swap")
            assert time.monotonic() - began < 0.3, "the first words come before the model has loaded"
            loading.read_until(b"[DONE]")
        call = Call(Client(field.network, port, field_request(model, tokens, gap), CHAT), model, stream=True)
        call.client.go()
        field.until(
            lambda: all(b"/v1/chat" in other.body or b"inflight" in other.body for other in others),
            "news",
            2.0,
        )
        assert call.wait().wrong() == ""
        for other in others:
            other.leave()
    gaps = [after - before for before, after in pairwise(call.client.arrivals[:tokens])]
    assert abs(statistics.median(gaps) - gap) < 0.05


def field_request(model: str, tokens: int = 2, gap: float = 0.0) -> bytes:
    """A streamed chat on the wire."""
    return request_for(model, stream=True, stub={"tokens": tokens, "gap": gap})


# --- silence, comments, odd fields -------------------------------------------------------------------------


def test_case_068_who_waits_is_sent_nothing_until_there_is_something(field: Field) -> None:
    """As with llama-swap: who wants a sign of life meanwhile switches `sendLoadingState` on."""
    running = field.send("A", stub={"hang": True}, tag="runs")
    field.until(lambda: field.records("arrived", tag="runs"), "its arrival")
    silent = field.send("quiet", stream=True, stub={"hang": True}, tag="silent")
    field.until(lambda: field.daemon.waiting() == 1, "it to wait")
    running.leave()
    field.until(lambda: field.records("arrived", tag="silent"), "its turn")
    time.sleep(0.1)
    assert (silent.status, silent.client.head, silent.body) == (0, None, b"")
    silent.leave()


def test_case_070_a_clients_library_reads_streams_with_comments_and_with_our_words_in_them(
    field: Field,
) -> None:
    base = f"http://127.0.0.1:{field.daemon.port}/v1"
    wish = {"X-Stub": '{"comments": 3}'}
    with OpenAI(base_url=base, api_key="none", max_retries=0, timeout=20) as client:
        for model in ("quiet", "A"):
            chunks = client.chat.completions.create(
                model=model,
                messages=[{"role": "user", "content": "hi"}],
                stream=True,
                extra_headers=wish,
            )
            said = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
            assert "".join(said) == expected(5)


def test_case_070_whatever_we_say_ourselves_is_data_that_is_not_empty(field: Field) -> None:
    story = cold(field, stream=True)

    assert story.wrong() == ""
    assert_only_data(story)


# --- what is told of a load --------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{}, {"tools": TOOLS}], ids=["plain", "tools"])
def test_case_071_a_streamed_chat_is_told_of_the_load_apart_from_what_the_model_says(
    more: dict[str, Any], field: Field
) -> None:
    told = cold(field, stream=True, **more)

    assert told.wrong() == ""
    assert told.text == expected(5)
    assert reasoning(told).count("━━━━━") == 2
    assert told.events.count(DONE) == 1
    assert told.events[-1] == DONE


@pytest.mark.parametrize(
    ("path", "stream"),
    [(CHAT, False), ("/v1/completions", True), ("/v1/messages", True)],
)
def test_case_071_nobody_else_is_told_of_it(path: str, stream: bool, field: Field) -> None:
    call = cold(field, stream=stream, path=path)
    assert call.wrong() == ""
    again = field.chat(call.model, stream=stream, path=path)

    assert call.body == again.body
    assert call.text == expected(5)


def test_case_071_an_error_behind_the_words_is_an_event_and_no_second_end(field: Field) -> None:
    late = cold(field, stream=True, stub={"tokens": 9, "error_at": 3})
    cut = cold(field, stream=True, stub={"tokens": 9, "drop_at": 3})

    assert late.complete
    assert len(late.errors) == 1
    assert not cut.complete
    assert late.text == cut.text == expected(3)
    assert DONE not in (*late.events[-1:], *cut.events[-1:])
    assert "died" in field.rows(2)[-1]["error_msg"]


def test_case_071_a_status_that_comes_too_late_is_told_as_an_event(field: Field) -> None:
    failure = cold(field, stream=True, stub={"status": 500})

    assert (failure.status, failure.complete) == (200, True)
    assert_only_data(failure)
    assert [error["code"] for error in failure.errors] == [500]
