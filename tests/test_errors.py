"""What a refused client gets: status, words, headers, in the shape that it likes."""

from __future__ import annotations

import json

import pytest

from llamaswap.errors import (
    BadRequest,
    BodiesFull,
    BodyTooLarge,
    LoadRefused,
    ModelFailing,
    ModelNotFound,
    ModelProtected,
    ModelUnloaded,
    NoModel,
    NotLoaded,
    NotReady,
    QueueFull,
    Refusal,
    ShuttingDown,
    TooManyReaders,
    TooManyRequests,
    UnknownModel,
    UpstreamUnreachable,
    envelope,
    kind_of,
    render,
    with_output,
)

EVERY_REFUSAL: list[tuple[Refusal, int, str]] = [
    (BadRequest("malformed form"), 400, "malformed form"),
    (NoModel(), 404, "no model id could be identified"),
    (UnknownModel(), 404, "no router for requested model"),
    (ModelNotFound(), 404, "model not found"),
    (NotLoaded("A is not loaded"), 409, "A is not loaded"),
    (TooManyRequests(), 429, "Too many requests"),
    (
        LoadRefused("health check timed out after 15s"),
        500,
        "unspecific error: health check timed out after 15s",
    ),
    (ModelFailing("A", "exited", (), 5), 503, "model A keeps failing to load: exited"),
    (ModelUnloaded(), 500, "unspecific error: group: model unloaded"),
    (
        ModelProtected("B", ["A"]),
        409,
        (
            "model A is loaded and protected, and B cannot run beside it; unload it (POST "
            "/api/models/unload/A) or send X-LlamaSwap-Evict: protected"
        ),
    ),
    (QueueFull(), 503, "the queue is full"),
    (TooManyReaders(), 503, "too many readers of events and logs"),
    (BodyTooLarge(), 413, "request body too large"),
    (BodiesFull(), 503, "no room for another request body now"),
    (ShuttingDown(), 503, "llamaswap is shutting down"),
    (NotReady("A"), 503, "[A] process is not ready"),
    (UpstreamUnreachable("connection refused"), 502, "connection refused"),
    (Refusal("something else"), 500, "something else"),
]


@pytest.mark.parametrize(
    ("refusal", "status", "message"), EVERY_REFUSAL, ids=[type(row[0]).__name__ for row in EVERY_REFUSAL]
)
def test_every_refusal_has_its_status_and_its_words(refusal: Refusal, status: int, message: str) -> None:
    assert (refusal.status, refusal.message, str(refusal)) == (status, message, message)
    assert render(refusal).status == status


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, "invalid_request_error", "bad_request"),
        (401, "authentication_error", "unauthorized"),
        (403, "authentication_error", "forbidden"),
        (404, "invalid_request_error", "not_found"),
        (409, "invalid_request_error", "conflict"),
        (429, "rate_limit_error", "rate_limit_exceeded"),
        (502, "server_error", "bad_gateway"),
        (503, "server_error", "service_unavailable"),
        (504, "server_error", "gateway_timeout"),
        (413, "invalid_request_error", "invalid_request"),
        (499, "invalid_request_error", "invalid_request"),
        (500, "server_error", "internal_error"),
        (501, "server_error", "internal_error"),
    ],
)
def test_a_status_has_the_type_and_code_that_clients_know(status: int, kind: str, code: str) -> None:
    assert kind_of(status) == (kind, code)


def test_the_envelope_is_what_openai_clients_parse() -> None:
    assert json.loads(envelope(UnknownModel())) == {
        "src": "llama-swap",
        "error": {
            "message": "no router for requested model",
            "type": "invalid_request_error",
            "param": None,
            "code": "not_found",
        },
    }
    assert not envelope(UnknownModel()).endswith(b"\n")


@pytest.mark.parametrize(
    ("accept", "kind", "body"),
    [
        ("text/plain", b"text/plain", b"llama-swap: a <b> & c"),
        ("text/html, text/plain;q=0.1", b"text/plain", b"llama-swap: a <b> & c"),
        (
            "text/html",
            b"text/html",
            b"<html><body><h1>llama-swap</h1><p>a &lt;b&gt; &amp; c</p></body></html>",
        ),
        ("application/json, text/html", b"text/html", None),
        ("", b"application/json", None),
        ("*/*", b"application/json", None),
        ("TEXT/PLAIN", b"application/json", None),
    ],
)
def test_an_error_comes_in_the_shape_that_the_client_asks_for(
    accept: str, kind: bytes, body: bytes | None
) -> None:
    rendered = render(BadRequest("a <b> & c"), accept)

    assert rendered.headers == ((b"Content-Type", kind),)
    if body is not None:
        assert rendered.body == body
    if kind == b"application/json":
        assert json.loads(rendered.body)["error"]["message"] == "a <b> & c"


@pytest.mark.parametrize("accept", ["", "text/plain", "text/html"])
def test_too_many_requests_is_json_for_everybody(accept: str) -> None:
    rendered = render(TooManyRequests(), accept)

    assert rendered.headers == ((b"Content-Type", b"application/json"), (b"Retry-After", b"1"))
    error = json.loads(rendered.body)["error"]
    assert (error["type"], error["code"]) == ("rate_limit_error", "concurrency_limit")


def test_a_refusal_that_passes_says_when_to_come_back() -> None:
    assert ShuttingDown().headers() == ((b"Retry-After", b"5"),)
    assert ModelFailing("A", "exited", (), 40).headers() == ((b"Retry-After", b"40"),)
    assert render(ModelFailing("A", "exited", (), 40), "text/plain").headers[-1] == (b"Retry-After", b"40")


def test_a_refusal_that_lasts_does_not() -> None:
    assert UnknownModel().headers() == ()
    assert LoadRefused("exited").headers() == ()


def test_a_failed_load_shows_the_last_output_oldest_first() -> None:
    assert with_output("exited with 1", ["loading", "out of memory"]) == (
        "exited with 1; its last output: loading | out of memory"
    )
    assert with_output("exited with 1", []) == "exited with 1"
    assert "out of memory" in LoadRefused("exited with 1", ["out of memory"]).message


def test_words_of_any_language_reach_the_client() -> None:
    refusal = BadRequest('modèle "日本" \x1b[31m')

    assert json.loads(render(refusal).body)["error"]["message"] == refusal.message
    assert render(refusal, "text/plain").body.decode() == f"llama-swap: {refusal.message}"


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        (QueueFull(), "queue_full"),
        (TooManyReaders(), "too_many_readers"),
        (BodiesFull(), "no_room_for_body"),
    ],
)
def test_what_is_full_now_may_be_asked_again_in_a_moment_and_says_what_it_was(
    refusal: Refusal, code: str
) -> None:
    assert refusal.headers() == ((b"Retry-After", b"5"),)
    assert json.loads(envelope(refusal))["error"]["code"] == code


def test_a_body_that_is_too_large_is_not_told_to_come_again() -> None:
    assert BodyTooLarge().headers() == ()
    assert json.loads(envelope(BodyTooLarge()))["error"]["code"] == "request_too_large"
