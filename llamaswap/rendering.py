"""Refusals as bytes for the wire, in three shapes: JSON, plain text or a small page.

Pure.  The JSON is the envelope that OpenAI clients parse, with llama-swap's `src` added.
"""

from __future__ import annotations

import html
import json
from dataclasses import dataclass

from llamaswap.errors import Header, Refusal

_KINDS: dict[int, tuple[str, str]] = {
    400: ("invalid_request_error", "bad_request"),
    401: ("authentication_error", "unauthorized"),
    403: ("authentication_error", "forbidden"),
    404: ("invalid_request_error", "not_found"),
    409: ("invalid_request_error", "conflict"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
    502: ("server_error", "bad_gateway"),
    503: ("server_error", "service_unavailable"),
    504: ("server_error", "gateway_timeout"),
}


def kind_of(status: int) -> tuple[str, str]:
    """Return the OpenAI `type` and `code` that go with a status."""
    if status in _KINDS:
        return _KINDS[status]
    if 400 <= status < 500:
        return ("invalid_request_error", "invalid_request")
    return ("server_error", "internal_error")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A refusal as bytes for the wire."""

    status: int
    headers: tuple[Header, ...]
    body: bytes


def render(refusal: Refusal, accept: str = "") -> Rendered:
    """Shape a refusal as the client likes it: JSON, plain text or a small page.

    The choice is a plain substring test of the `Accept` header, text before
    HTML before JSON, as in llama-swap.
    """
    kind, body = "application/json", envelope(refusal)
    if not refusal.always_json:
        if "text/plain" in accept:
            kind, body = "text/plain", f"llama-swap: {refusal.message}".encode("utf-8", "replace")
        elif "text/html" in accept:
            kind, body = "text/html", _page(refusal.message)
    return Rendered(refusal.status, ((b"Content-Type", kind.encode()), *refusal.headers()), body)


def envelope(refusal: Refusal) -> bytes:
    """Return the JSON error envelope, without a newline at its end."""
    kind, code = kind_of(refusal.status)
    error = {"message": refusal.message, "type": kind, "param": None, "code": refusal.code or code}
    return json.dumps({"src": "llama-swap", "error": error}, separators=(",", ":")).encode()


def _page(message: str) -> bytes:
    return f"<html><body><h1>llama-swap</h1><p>{html.escape(message)}</p></body></html>".encode(
        "utf-8", "replace"
    )
