"""What browsers hear when they ask first."""

from __future__ import annotations

import pytest

from llamaswap.web.cors import clean_names
from support.web_daemon import WebDaemon


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/no/such/path", "/upstream/a/x", "*"])
def test_every_preflight_is_allowed_and_goes_no_further(path: str) -> None:
    daemon = WebDaemon()

    asked = daemon.request("OPTIONS", path, headers={"Origin": "https://x.example"})

    assert asked.status == 204
    assert asked.body == b""
    assert asked.headers["access-control-allow-origin"] == "*"
    assert asked.headers["access-control-allow-methods"] == "GET, POST, PUT, PATCH, DELETE, OPTIONS"
    assert asked.headers["access-control-max-age"] == "86400"
    assert asked.headers["access-control-allow-headers"] == (
        "Content-Type, Authorization, Accept, X-Requested-With"
    )
    assert daemon.children.started == []


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        (b"X-One, x-two", b"X-One, x-two"),
        (b"X-One,x-two", b"X-One, x-two"),
        (b"Valid, Bad Header", b"Valid"),
        (b"Bad@Header", b""),
        (b" , ,", b""),
        (b"", b""),
        (b"!#$%&'*+-.^_`|~", b"!#$%&'*+-.^_`|~"),
        (b"gr\xc3\xb6\xc3\x9fe, ok", b"ok"),
    ],
)
def test_only_header_names_that_are_names_come_back(asked: bytes, allowed: bytes) -> None:
    assert clean_names(asked) == allowed


def test_the_headers_that_a_browser_asks_for_are_allowed() -> None:
    asked = WebDaemon().request(
        "OPTIONS", "/", headers={"Access-Control-Request-Headers": "x-llamaswap-priority, bad header"}
    )

    assert asked.headers["access-control-allow-headers"] == "x-llamaswap-priority"
