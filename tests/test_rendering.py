"""A refusal in the shape that its client likes."""

from __future__ import annotations

import json

import pytest

from llamaswap.errors import BadRequest, TooManyRequests, UnknownModel
from llamaswap.rendering import envelope, kind_of, render


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


def test_words_of_any_language_reach_the_client() -> None:
    refusal = BadRequest('modèle "日本" \x1b[31m')

    assert json.loads(render(refusal).body)["error"]["message"] == refusal.message
    assert render(refusal, "text/plain").body.decode() == f"llama-swap: {refusal.message}"
