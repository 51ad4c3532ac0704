"""What `/comfyui/` does to its one model, through the whole daemon."""

from __future__ import annotations

import pytest

from support.web_daemon import TWO_MODELS, WebDaemon
from support.web_talk import Talk, Upstream

COMFY = """
    routing: {scheduler: {use: serial}}
    models:
      a: {cmd: serve a, proxy: "http://127.0.0.1:9001"}
      comfyui_auto: {cmd: serve comfyui_auto, proxy: "http://127.0.0.1:9002", ttl: 5}
"""
SOCKET = {"Connection": "Upgrade", "Upgrade": "websocket"}
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"


def warmed() -> tuple[WebDaemon, Upstream]:
    """A daemon whose ComfyUI is loaded, and the connection to it."""
    daemon = WebDaemon(COMFY)
    asked = daemon.get("/comfyui/")
    daemon.ready()
    upstream = daemon.upstream()
    upstream.answers(b"<html>", kind="text/html")
    assert asked.body == b"<html>"
    return daemon, upstream


def test_the_front_page_starts_it_and_leaves_no_trace_in_the_log_of_calls() -> None:
    daemon, _ = warmed()

    assert daemon.running == ["comfyui_auto"]
    assert daemon.rows == []
    assert b'"requests\\":[]' in daemon.get("/api/events").body


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_anything_else_is_a_conflict_until_it_is_ready(method: str) -> None:
    daemon = WebDaemon(COMFY)
    asked = daemon.request(method, "/comfyui/prompt", body=b"{}" if method == "POST" else None)
    assert (asked.status, daemon.running) == (409, [])

    daemon.get("/comfyui/")
    assert daemon.request(method, "/comfyui/prompt").status == 409


def test_a_page_of_a_ready_one_passes_a_running_job() -> None:
    daemon, upstream = warmed()
    daemon.post("/comfyui/prompt", {"prompt": {}})
    assert upstream.line == "POST /prompt"

    asked = daemon.get("/comfyui/view?filename=x%20y.png")
    other = daemon.upstream()
    assert other.line == "GET /view?filename=x%20y.png"
    other.answers(b"png")

    assert asked.body == b"png"
    assert len(daemon.engine.view().jobs) == 1


def test_a_post_is_a_job_and_takes_its_turn() -> None:
    daemon, upstream = warmed()
    first = daemon.post("/comfyui/prompt", {"prompt": 1})
    second = daemon.post("/comfyui/prompt", {"prompt": 2})
    assert len(daemon.engine.view().jobs) == 1

    upstream.answers()
    assert (first.status, second.waits) == (200, True)
    assert upstream.body == b'{"prompt": 2}'
    upstream.answers()

    assert second.status == 200


def test_its_socket_goes_past_the_queue_and_is_no_sign_of_life() -> None:
    daemon, upstream = warmed()
    socket = daemon.request("GET", "/comfyui/ws", headers=SOCKET)
    upstream.end.send(SWITCH)
    socket.end.send(b"ping")
    assert (socket.status, upstream.heard[-4:]) == (101, b"ping")
    assert daemon.engine.view().jobs == ()

    daemon.reactor.pump([1.0] * 6)

    assert daemon.child.signals == ["TERM"]
    upstream.end.leave()
    assert socket.end.is_closed()


def test_its_socket_does_not_keep_another_model_waiting() -> None:
    daemon, upstream = warmed()
    socket = daemon.request("GET", "/comfyui/ws", headers=SOCKET)
    upstream.end.send(SWITCH)

    asked = daemon.chat("a")
    assert daemon.child.signals == ["TERM"]
    daemon.goes()
    upstream.dies()
    daemon.ready()
    daemon.upstream().answers()

    assert asked.status == 200
    assert socket.end.is_closed()


def test_a_socket_cannot_start_it() -> None:
    daemon = WebDaemon(COMFY)

    assert daemon.request("GET", "/comfyui/ws", headers=SOCKET).status == 409
    assert daemon.request("GET", "/comfyui/", headers=SOCKET).status == 409
    assert daemon.running == []


@pytest.mark.parametrize(("method", "status"), [("GET", 301), ("POST", 308)])
def test_the_bare_path_leads_to_the_front_page_even_without_the_model(method: str, status: int) -> None:
    asked = WebDaemon(TWO_MODELS).request(method, "/comfyui?x=1")

    assert (asked.status, asked.headers["location"]) == (status, "/comfyui/?x=1")


def test_without_the_model_there_is_nothing_here() -> None:
    asked: Talk = WebDaemon(TWO_MODELS).get("/comfyui/")

    assert (asked.status, asked.message) == (404, "local model comfyui_auto not found")
