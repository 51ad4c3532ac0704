"""Where a preloaded model is greeted; that it is, and what comes of it, is in `test_preload`."""

from __future__ import annotations

import pytest

from llamaswap.greeting import _root_of
from llamaswap.processes.health import parse_proxy


@pytest.mark.parametrize(
    ("proxy", "url"),
    [
        ("http://127.0.0.1:9001", "http://127.0.0.1:9001/"),
        ("http://localhost:9001/pre/", "http://localhost:9001/pre/"),
        ("https://[::1]:9001", "https://[::1]:9001/"),
        ("http://box/pre?key=1", "http://box:80/pre/?key=1"),
    ],
)
def test_a_greeting_goes_where_the_proxy_says(proxy: str, url: str) -> None:
    assert _root_of(parse_proxy(proxy)) == url
