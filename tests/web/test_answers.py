"""The shapes in which the daemon's own answers leave."""

from __future__ import annotations

import pytest

from llamaswap.web.answers import json_bytes
from support.web_daemon import WebDaemon


@pytest.mark.parametrize(
    ("accept", "kind", "body"),
    [
        ("", "application/json", b'{"src":"llama-swap","error":{"message":"no router for requested model"'),
        ("*/*", "application/json", b'{"src":"llama-swap"'),
        ("text/plain", "text/plain", b"llama-swap: no router for requested model"),
        ("application/json, text/plain", "text/plain", b"llama-swap: "),
        ("text/html,application/xhtml+xml", "text/html", b"<html><body><h1>llama-swap</h1><p>no router"),
        ("text/html, text/plain;q=0.1", "text/plain", b"llama-swap: "),
    ],
)
def test_a_refusal_comes_in_the_shape_that_the_client_accepts(accept: str, kind: str, body: bytes) -> None:
    asked = WebDaemon().chat("ghost", Accept=accept)

    assert asked.status == 404
    assert asked.headers["content-type"] == kind
    assert asked.body.startswith(body)
    assert not asked.body.endswith(b"\n")


def test_a_row_of_a_refusal_says_in_which_shape_it_left() -> None:
    daemon = WebDaemon()

    daemon.chat("ghost", Accept="text/plain")

    assert daemon.rows[0].resp_status_code == 404
    assert daemon.rows[0].resp_content_type == "text/plain"


def test_json_is_one_line_that_is_safe_inside_html() -> None:
    assert json_bytes({"a": ["<b>&"], "ü": 1}) == '{"a":["\\u003cb\\u003e\\u0026"],"ü":1}\n'.encode()
