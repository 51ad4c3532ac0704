"""Who is let in."""

from __future__ import annotations

import hmac

import pytest

from llamaswap.config.model import CallerConfig
from llamaswap.http1.heads import RequestHead
from llamaswap.web.keys import Keyring, Unauthorized, candidate_of
from support.web_daemon import WebDaemon, basic

KEYS = Keyring(["sk-one", "sk-two", "größe"])


def head(**fields: str) -> RequestHead:
    """A request with these header fields."""
    headers = tuple((name.replace("_", "-").encode(), value.encode()) for name, value in fields.items())
    return RequestHead(b"GET", b"/", (1, 1), headers)


@pytest.mark.parametrize(
    "fields",
    [
        {"Authorization": "Bearer sk-one"},
        {"Authorization": "bearer sk-two"},
        {"authorization": "BEARER größe"},
        {"Authorization": basic("anybody", "sk-one")},
        {"Authorization": basic("", "sk-one")},
        {"Authorization": basic("x", "sk-one").replace("Basic", "basic")},
        {"x_api_key": "sk-one"},
        {"X_Api_Key": "sk-two"},
        {"Authorization": basic("x", "sk-one"), "x_api_key": "wrong"},
        {"Authorization": "Bearer sk-one", "x_api_key": "wrong"},
        {"Authorization": "Basic !!!", "x_api_key": "sk-one"},
        {"Authorization": basic("x", ""), "x_api_key": "sk-one"},
        {"Authorization": "Basic eA==", "x_api_key": "sk-one"},
        {"Authorization": "Digest whatever", "x_api_key": "sk-one"},
        {"Authorization": "sk-wrong", "x_api_key": "sk-one"},
        {"Authorization": "", "x_api_key": "sk-one"},
        {"Authorization": "Bearer", "x_api_key": "sk-one"},
    ],
)
def test_a_request_with_a_key_comes_in(fields: dict[str, str]) -> None:
    KEYS.check(head(**fields))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer sk-one sk-two"},
        {"Authorization": "Bearer  sk-one"},
        {"Authorization": "Bearer sk-On"},
        {"Authorization": "Bearer sk-one2"},
        {"Authorization": "sk-one"},
        {"Authorization": basic("sk-one", "wrong")},
        {"Authorization": "Bearer wrong", "x_api_key": "sk-one"},
        {"Authorization": basic("x", "wrong"), "x_api_key": "sk-one"},
        {"x_api_key": ""},
        {"x_api_key": "sk-on"},
        {"Authorization": "Bearer \ud83d".encode("utf-8", "replace").decode()},
    ],
)
def test_a_request_without_one_stays_outside(fields: dict[str, str]) -> None:
    with pytest.raises(Unauthorized):
        KEYS.check(head(**fields))


def test_without_keys_everybody_comes_in() -> None:
    Keyring([]).check(head())


def test_nothing_is_no_candidate() -> None:
    assert candidate_of(head()) == b""


LOCKED = """
    apiKeys: [sk-one]
    models: {a: {cmd: serve a, proxy: "http://127.0.0.1:9001"}}
"""


@pytest.mark.parametrize(
    "path",
    ["/v1/models", "/metrics", "/running", "/logs", "/logs/stream", "/upstream/a/x", "/ui/", "/unload"],
)
def test_a_locked_page_asks_for_the_key(path: str) -> None:
    daemon = WebDaemon(LOCKED)

    asked = daemon.get(path)

    assert asked.status == 401
    assert asked.headers["www-authenticate"] == 'Basic realm="llama-swap"'
    assert asked.message == "unauthorized: invalid or missing API key"
    assert asked.json["error"]["type"] == "authentication_error"
    assert daemon.children.started == []


def test_a_locked_out_call_leaves_no_row_and_an_admitted_one_takes_its_key_along() -> None:
    daemon = WebDaemon(LOCKED)

    assert daemon.chat().status == 401
    assert daemon.rows == []
    asked = daemon.chat(Authorization="Bearer sk-one")
    daemon.ready()
    upstream = daemon.upstream()
    assert ("Authorization", "Bearer sk-one") in upstream.fields
    upstream.answers()
    assert asked.status == 200


@pytest.mark.parametrize(
    ("path", "status"), [("/health", 200), ("/wol-health", 200), ("/", 302), ("/no", 404)]
)
def test_open_pages_need_no_key(path: str, status: int) -> None:
    assert WebDaemon(LOCKED).get(path).status == status


def test_the_wrong_method_and_a_preflight_need_no_key() -> None:
    daemon = WebDaemon(LOCKED)

    assert daemon.request("POST", "/unload").status == 405
    assert daemon.request("OPTIONS", "/v1/models").status == 204


def test_a_key_tells_who_calls() -> None:
    pro, bot = CallerConfig(name="pro", keys=("sk-one",)), CallerConfig(name="bot", keys=("größe",))
    ring = Keyring(["sk-one", "sk-two", "größe"], [pro, bot])

    assert ring.caller_of(head(Authorization="Bearer sk-one")) is pro
    assert ring.caller_of(head(x_api_key="größe")) is bot
    assert ring.caller_of(head(x_api_key="sk-two")) is None
    assert ring.caller_of(head(x_api_key="wrong")) is None
    assert ring.caller_of(head()) is None


def test_who_calls_is_found_out_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []
    genuine = hmac.compare_digest

    def noted(first: bytes, second: bytes) -> bool:
        compared.append(second)
        return genuine(first, second)

    monkeypatch.setattr(hmac, "compare_digest", noted)
    ring = Keyring(["one", "two", "three"], [CallerConfig(name="c", keys=("one",))])

    ring.caller_of(head(x_api_key="one"))

    assert compared == [b"one", b"two", b"three"]
