"""A key is looked at everywhere, and how long that takes tells nothing of it."""

from __future__ import annotations

import hmac

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.http1.heads import RequestHead
from llamaswap.web.keys import Keyring, Unauthorized
from llamaswap.web.routes import ROUTES
from support.web_daemon import WebDaemon

SECRET = "s3same-9d1f"


def test_every_key_is_compared_in_constant_time_whatever_was_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []
    genuine = hmac.compare_digest

    def noted(first: bytes, second: bytes) -> bool:
        compared.append((first, second))
        return genuine(first, second)

    monkeypatch.setattr(hmac, "compare_digest", noted)
    ring = Keyring(["one", "two", "three"])
    for offered in (b"one", b"three", b"nothing", b""):
        compared.clear()
        try:
            ring.check(RequestHead(b"GET", b"/", (1, 1), ((b"X-Api-Key", offered),)))
        except Unauthorized:
            assert offered in (b"nothing", b"")
        assert compared == [(offered, b"one"), (offered, b"two"), (offered, b"three")]


@given(st.binary(max_size=30))
@settings(max_examples=100, deadline=None)
def test_only_a_key_opens(offered: bytes) -> None:
    field = b"".join(bytes([byte]) for byte in offered if byte >= 0x20 and byte != 0x7F)
    ring = Keyring([SECRET, "größe"])
    for fields in ((b"Authorization", b"Bearer " + field), (b"Authorization", field), (b"X-Api-Key", field)):
        with pytest.raises(Unauthorized):
            ring.check(RequestHead(b"GET", b"/", (1, 1), (fields,)))


def test_every_route_but_the_open_ones_asks_for_the_key() -> None:
    told = {route.pattern.decode() for route in ROUTES if route.open}
    assert told == {"/", "/health", "/wol-health", "/favicon.ico", "/upstream"}
    daemon = WebDaemon(api_keys=(SECRET,))
    for route in ROUTES:
        if route.open:
            continue
        for method in route.methods or (b"GET", b"POST", b"DELETE", b"PATCH", b"TRACE"):
            path = route.pattern.decode().replace("{rest}", "a/x")
            assert daemon.request(method.decode(), path).status == 401, path
            escaped = path.replace("a", "%61")
            assert daemon.request(method.decode(), escaped).status == 401, escaped
            assert daemon.request(method.decode(), f"http://x{path}").status == 401, path
    assert daemon.children.started == []
