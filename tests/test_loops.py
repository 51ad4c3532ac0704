"""Which addresses lead back to the daemon."""

from __future__ import annotations

import pytest
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress

from llamaswap.config.load import load_text
from llamaswap.loops import leads_here, loops_of
from llamaswap.processes.health import parse_proxy

LOOPBACK = IPv4Address("TCP", "127.0.0.1", 8080)
LOOPBACK_6 = IPv6Address("TCP", "::1", 8080)
EVERYWHERE = IPv6Address("TCP", "::", 8080)
EVERYWHERE_4 = IPv4Address("TCP", "0.0.0.0", 8080)
OUTSIDE = IPv4Address("TCP", "192.0.2.7", 8080)
SOCKET = UNIXAddress("/run/llamaswap.sock")


@pytest.mark.parametrize(
    ("proxy", "place", "here"),
    [
        ("http://127.0.0.1:8080", LOOPBACK, True),
        ("http://127.0.0.1:8080/v1", LOOPBACK, True),
        ("http://LocalHost:8080", LOOPBACK, True),
        ("http://localhost:8080", LOOPBACK_6, True),
        ("http://[::1]:8080", LOOPBACK_6, True),
        ("http://127.0.0.1:8080", EVERYWHERE, True),
        ("http://127.0.0.2:8080", EVERYWHERE_4, True),
        ("http://0.0.0.0:8080", EVERYWHERE_4, True),
        ("http://192.0.2.7:8080", OUTSIDE, True),
        ("http://127.0.0.1:8081", LOOPBACK, False),
        ("http://127.0.0.2:8080", LOOPBACK, False),
        ("http://[::1]:8080", LOOPBACK, False),
        ("http://127.0.0.1:8080", OUTSIDE, False),
        ("http://192.0.2.8:8080", EVERYWHERE, False),
        ("http://gpu.example:8080", EVERYWHERE, False),
        ("http://localhost:8080", SOCKET, False),
    ],
)
def test_case_030_an_address_leads_here_if_we_listen_there(proxy: str, place: object, here: bool) -> None:
    assert leads_here(parse_proxy(proxy), [SOCKET, place]) == here


def test_case_030_each_proxy_that_leads_back_is_named_with_its_path() -> None:
    config = load_text(
        """
        models:
          fine: {cmd: "serve ${PORT}"}
          loop: {cmd: serve, proxy: "http://localhost:8080"}
          none: {cmd: serve, proxy: ""}
        peers:
          us: {proxy: "http://127.0.0.1:8080/v1", models: [x]}
          them: {proxy: "http://127.0.0.1:8081", models: [y]}
        """
    )

    assert list(loops_of(config, [LOOPBACK])) == [
        ("models.loop.proxy", "http://localhost:8080"),
        ("peers.us.proxy", "http://127.0.0.1:8080/v1"),
    ]
    assert list(loops_of(config, [])) == []
