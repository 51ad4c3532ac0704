"""The shapes of our own answers: JSON, text, redirects, refusals."""

from __future__ import annotations

import json
from typing import Any

from llamaswap.errors import Header, Refusal
from llamaswap.http1.exchange import Exchange
from llamaswap.rendering import Rendered, render
from llamaswap.web.paths import redirect_page

JSON: Header = (b"Content-Type", b"application/json")
TEXT: Header = (b"Content-Type", b"text/plain; charset=utf-8")
NO_SNIFFING: Header = (b"X-Content-Type-Options", b"nosniff")
UNBUFFERED: Header = (b"X-Accel-Buffering", b"no")

_HTML_SAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def json_bytes(value: Any) -> bytes:
    """Return JSON as llama-swap writes it: one line, `<`, `>` and `&` escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_HTML_SAFE).encode() + b"\n"


def answer_json(exchange: Exchange, value: Any, *, headers: tuple[Header, ...] = ()) -> None:
    """Answer with a JSON document."""
    exchange.respond(200, json_bytes(value), headers=(JSON, *headers))


def answer_text(
    exchange: Exchange, text: str, *, status: int = 200, headers: tuple[Header, ...] = ()
) -> None:
    """Answer with plain text."""
    exchange.respond(status, text.encode(), headers=(TEXT, *headers))


def answer_not_found(exchange: Exchange) -> None:
    """Answer for a path that is nothing of ours, in Go's words."""
    answer_text(exchange, "404 page not found\n", status=404, headers=(NO_SNIFFING,))


def refuse(exchange: Exchange, refusal: Refusal) -> Rendered:
    """Answer with an error; cut the connection if the answer has begun already.

    Returns:
        The answer; without headers and body if there was none.
    """
    if exchange.started:
        exchange.abort()
        return Rendered(refusal.status, (), b"")
    accept = (exchange.head.get(b"accept") or b"").decode("latin-1")
    rendered = render(refusal, accept)
    exchange.respond(rendered.status, rendered.body, headers=rendered.headers)
    return rendered


def redirect(exchange: Exchange, status: int, location: bytes) -> None:
    """Send the client elsewhere; GET gets a page that links there."""
    fields, body = redirect_page(exchange.head.method, status, location)
    exchange.respond(status, body, headers=fields)
