"""Who may come in, what browsers are told, and what status pages get: from outside, on a real daemon."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from support.real_daemon import Daemon, started, stub_config
from support.real_daemon_talk import Answer, Wire, ask, chat_body, json_fields, request_bytes
from support.real_odd import odd_config, odd_fields

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"
KEY = "sesame-7781"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("doors")


@pytest.fixture(scope="module")
def locked(folder: Path) -> Iterator[Daemon]:
    """A daemon with a key; in the end the key stands nowhere in what it wrote."""
    config = {**stub_config(folder), "apiKeys": ["another", KEY], "logLevel": "debug"}
    with LockedDaemon(folder, config) as daemon:
        yield daemon
        assert KEY not in daemon.output()


class LockedDaemon:
    """A daemon whose own questions carry no key: it is only asked what is open, and stopped."""

    def __init__(self, folder: Path, config: Mapping[str, object]) -> None:
        self._daemon = Daemon(folder, json.dumps(config))

    def __enter__(self) -> Daemon:
        self._daemon.wait_started()
        return self._daemon

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._daemon.stop()
        finally:
            self._daemon.destroy()


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


GOOD: dict[str, dict[str, str]] = {
    "bearer": {"Authorization": f"Bearer {KEY}"},
    "bearer in lower case": {"authorization": f"bearer {KEY}"},
    "bearer in upper case": {"AUTHORIZATION": f"BEARER {KEY}"},
    "the other key": {"Authorization": "Bearer another"},
    "x-api-key": {"x-api-key": KEY},
    "basic": basic("anybody", KEY),
    "basic without a name": basic("", KEY),
}
BAD: dict[str, dict[str, str]] = {
    "none": {},
    "wrong": {"Authorization": "Bearer sesame"},
    "longer": {"Authorization": f"Bearer {KEY}x"},
    "other case": {"x-api-key": KEY.upper()},
    "empty": {"Authorization": "Bearer "},
    "basic with the key as the name": basic(KEY, "x"),
    "wrong bearer beside a right x-api-key": {"Authorization": "Bearer no", "x-api-key": KEY},
    "no scheme": {"Authorization": KEY},
    "an unknown scheme": {"Authorization": f"Digest {KEY}"},
    "a cookie": {"Cookie": f"key={KEY}"},
}
OPEN = {"/": 302, "/health": 200, "/wol-health": 200, "/favicon.ico": 404, "/upstream": 302, "/nowhere": 404}
CLOSED = [
    "/v1/models",
    "/models",
    "/running",
    "/unload",
    "/logs",
    "/logs/stream",
    "/metrics",
    "/ui/",
    "/upstream/a/x",
    "/comfyui",
    "/props?model=a",
    "/api/version",
    "/api/events",
    "/api/profiles",
    "/api/performance",
    "/api/hardware",
    "/api/captures/1",
    "/api/metrics/activity",
    "/api/metrics/stats",
]


def chat(daemon: Daemon, fields: Mapping[str, str], path: str = CHAT) -> Answer:
    return ask(daemon.port, "POST", path, chat_body("a"), {**json_fields(), **fields})


@pytest.mark.parametrize("fields", GOOD.values(), ids=GOOD)
def test_case_086_a_key_opens_in_every_way_to_show_one(fields: dict[str, str], locked: Daemon) -> None:
    assert ask(locked.port, "GET", "/running", None, fields).status == 200
    assert chat(locked, fields).status == 200


@pytest.mark.parametrize("fields", BAD.values(), ids=BAD)
def test_case_086_what_is_no_key_opens_nothing(fields: dict[str, str], locked: Daemon) -> None:
    for answer in (
        ask(locked.port, "GET", "/running", None, fields),
        chat(locked, fields),
        chat(locked, fields, f"{CHAT}?key={KEY}&api_key={KEY}"),
    ):
        assert answer.status == 401
        assert answer.error == "unauthorized: invalid or missing API key"
        assert answer.headers["WWW-Authenticate"] == 'Basic realm="llama-swap"'


def test_case_086_without_a_key_only_what_tells_nothing_is_open(locked: Daemon) -> None:
    assert {path: ask(locked.port, "GET", path).status for path in OPEN} == OPEN
    assert {path: ask(locked.port, "GET", path).status for path in CLOSED} == dict.fromkeys(CLOSED, 401)
    for method, path in (("POST", "/api/models/unload"), ("POST", "/api/inflight/1/cancel")):
        assert ask(locked.port, method, path).status == 401
    assert ask(locked.port, "OPTIONS", CHAT).status == 204


def test_case_086_a_body_without_a_key_is_refused_before_it_has_come(locked: Daemon) -> None:
    with Wire(locked.port) as wire:
        wire.send(request_bytes("POST", CHAT, headers={**json_fields(), "Content-Length": "100000000"}))
        assert wire.read_until(b"\r\n").startswith(b"HTTP/1.1 401 ")


def test_case_086_a_key_stands_in_no_capture_no_row_and_no_log(locked: Daemon) -> None:
    fields = {"Authorization": f"Bearer {KEY}", "x-api-key": KEY, "Cookie": f"key={KEY}"}
    assert chat(locked, fields).status == 200
    page = ask(locked.port, "GET", "/api/metrics/activity", None, fields)
    capture = ask(locked.port, "GET", f"/api/captures/{page.json['data'][0]['id']}", None, fields)
    logs = [ask(locked.port, "GET", path, None, fields) for path in ("/logs", "/metrics")]

    assert capture.status == 200
    assert capture.json["req_headers"]["Authorization"] == "[REDACTED]"
    whole = json.dumps({**capture.json, "resp_body": ""})  # the stub tells every header that it got
    assert KEY not in whole
    assert not any(KEY.encode() in answer.body for answer in (page, *logs))


def test_case_086_credentials_reach_the_model_server_unchanged_as_they_do_with_llama_swap(
    locked: Daemon,
) -> None:
    """A llama-server that was given `--api-key` needs them; see the section on differences in the README."""
    told = chat(locked, {"Authorization": f"Bearer {KEY}"}).json

    assert told["headers"]["authorization"] == f"Bearer {KEY}"


# Browsers


@pytest.mark.parametrize("path", [CHAT, "/v1/models", "/nowhere", "/api/events", "/upstream/a/x"])
def test_a_preflight_is_allowed_everywhere_and_needs_no_key(path: str, locked: Daemon) -> None:
    asked = "authorization, x-stainless-os, X-Stainless-Retry-Count, bad name, content-type"
    fields = {"Origin": "http://page", "Access-Control-Request-Headers": asked}

    answer = ask(locked.port, "OPTIONS", path, None, fields)

    assert answer.status == 204
    assert answer.headers.get_all("Access-Control-Allow-Origin") == ["*"]
    allowed = answer.headers["Access-Control-Allow-Headers"]
    assert allowed == "authorization, x-stainless-os, X-Stainless-Retry-Count, content-type"


def test_an_answer_says_of_its_origin_what_llama_swap_says_and_never_says_it_twice(tmp_path: Path) -> None:
    """Model lists echo it, our other answers say nothing, and an upstream's words pass: once, if at all."""
    page = {"Origin": "http://page"}
    path = tmp_path / "body"
    path.write_bytes(b"{}")
    with started(tmp_path, odd_config("a")) as daemon:

        def origins(answer: Answer) -> list[str]:
            found: list[str] = answer.headers.get_all("Access-Control-Allow-Origin") or []
            return found

        assert origins(ask(daemon.port, "GET", "/v1/models", None, page)) == ["http://page"]
        assert origins(ask(daemon.port, "GET", "/models", None, page)) == ["http://page"]
        assert origins(ask(daemon.port, "GET", "/v1/models")) == []
        assert origins(ask(daemon.port, "GET", "/running", None, page)) == []
        unknown = ask(daemon.port, "POST", CHAT, chat_body("none"), {**json_fields(), **page})
        assert (unknown.status, origins(unknown)) == (404, [])
        for said in ("*", "http://page"):
            upstream = odd_fields(path, [100], fields=[f"Access-Control-Allow-Origin: {said}"])
            assert origins(ask(daemon.port, "POST", CHAT, chat_body("a"), {**upstream, **page})) == [said]


# Status pages


def test_case_089_helper_routes_answer_as_llama_swaps_do_and_never_swap_for_a_resident_model(
    tmp_path: Path,
) -> None:
    with started(tmp_path, stub_config(tmp_path)) as daemon:
        assert [daemon.get(path).status for path in ("/models", "/v1/models", "/props")] == [200, 200, 404]
        assert daemon.get("/models").json["data"][0]["id"] == "a"
        assert daemon.running() == {}, "a list loads nothing"

        assert daemon.chat("a").status == 200
        (pid,) = daemon.model_processes("a")
        assert daemon.get("/props?model=a&autoload=false").json["target"] == "/props?model=a&autoload=false"
        assert ask(daemon.port, "POST", "/props?model=a", b"{}").status == 405
        assert daemon.get("/props?model=none").status == 404
        assert daemon.model_processes("a") == [pid]
        assert daemon.total("llamaswap_scheduler_dispatched_total") == 1

        # One that is not resident is loaded for it, in its turn, as llama-swap loads it.
        assert daemon.get("/props?model=b").json["model"] == "b"
        assert daemon.total("llamaswap_scheduler_dispatched_total") == 2
