"""A path behind `/upstream/<model>` stays behind the address that the model's `proxy` names."""

from __future__ import annotations

import posixpath
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llamaswap.errors import BadRequest
from llamaswap.web.paths import check_stays
from support.web_daemon import WebDaemon
from support.web_talk import Talk

BASE = "/pre/fix"
PLACED = f"""
    models:
      m: {{cmd: serve m, proxy: "http://127.0.0.1:9001{BASE}"}}
      comfyui_auto: {{cmd: serve c, proxy: "http://127.0.0.1:9002{BASE}"}}
    peers:
      far: {{proxy: "http://127.0.0.1:9003{BASE}", models: [p]}}
"""
PORTS = {"m": 9001, "comfyui": 9002, "far/p": 9003}
STARTS = {"m": "/upstream/m", "comfyui": "/comfyui", "far/p": "/upstream/far/p"}

PIECES = [
    *("..", "%2e%2e", ".%2E", "%2e.", ".", "%2e", "...", "..;", "%252e%252e", "%c0%ae%c0%ae", "a", "x.js"),
    *("/", "//", "%2f", "%2F", "\\", "%5c", "%252f", "%00", "%0d%0a", "%20", "%0d%0aHost:%20evil"),
    *("http:", "evil", "@", "user:pw@", ":9009", "?", "?x=/../..", "#", ";", "*", "%e2%80%a8"),
]
rests = st.lists(st.sampled_from(PIECES), max_size=7).map("".join)


def ask(model: str, rest: str, start: str = "") -> tuple[WebDaemon, Talk, bytes]:
    """Ask a model for something by path; returns what its server was sent for it, b'' for nothing."""
    daemon = WebDaemon(PLACED)
    if model == "comfyui":
        daemon.get("/comfyui/")  # only this may start it
        daemon.ready()
        upstream = daemon.upstream()
        upstream.answers()
        asked = daemon.get(start + STARTS[model] + rest)
        return daemon, asked, upstream.heard
    asked = daemon.get(start + STARTS[model] + rest)
    if daemon.children.alive:
        daemon.ready()
    return daemon, asked, daemon.upstream().heard if daemon.reactor.attempts else b""


def resolved(target: bytes) -> str:
    """Where a server ends up that decodes a target, takes backslashes for slashes and cleans the path."""
    path = unquote_to_bytes(target.partition(b"?")[0]).replace(b"\\", b"/").split(b"\0")[0]
    segments = [segment.partition(b";")[0] for segment in path.split(b"/")]
    return posixpath.normpath(b"/".join(segments).decode("latin-1"))


@given(st.sampled_from(sorted(PORTS)), rests)
@settings(max_examples=150, deadline=None)
@example("m", "%2F../../secret")
@example("m", "/%2e%2e/%2e%2e/secret")
@example("m", "/a%2f..%2f..%2f..%2fsecret")
@example("m", "%2F/evil/x")
@example("m", "/..%5c..%5csecret")
@example("comfyui", "/%2e%2e/secret")
@example("comfyui", "/%2F..%2Fsecret")
@example("far/p", "/%2e%2e/secret")
def test_whatever_the_path_it_stays_below_the_base_and_goes_to_the_same_server(model: str, rest: str) -> None:
    daemon, asked, heard = ask(model, rest)

    if not heard:
        assert asked.status in (301, 307, 400, 404, 409)
        return
    connected = {client[:2] for client in daemon.reactor.tcpClients}
    assert connected == {("127.0.0.1", PORTS[model])}
    method, target, version = heard.split(b"\r\n")[0].split(b" ")
    assert (method, version) == (b"GET", b"HTTP/1.1")
    assert target.startswith(f"{BASE}/".encode())
    assert not target.startswith(f"{BASE}//".encode())
    assert f"{resolved(target)}/".startswith(f"{BASE}/")
    assert heard.count(b"\r\n\r\n") == 1 and heard.lower().count(b"\r\nhost:") == 1


@pytest.mark.parametrize(
    "start", ["http://evil.example", "http://user:pw@evil.example:99", "https://evil.example", "ftp://evil"]
)
def test_an_absolute_target_is_read_as_its_path_and_leads_nowhere_else(start: str) -> None:
    daemon, _, heard = ask("m", "/x?y=1", start)

    assert [client[:2] for client in daemon.reactor.tcpClients] == [("127.0.0.1", 9001)]
    assert heard.startswith(f"GET {BASE}/x?y=1 HTTP/1.1\r\n".encode())
    assert b"evil" not in heard


@pytest.mark.parametrize(
    "target", ["//evil.example/upstream/m/x", "evil.example:443", "m/x", "?x", "\\\\evil\\x"]
)
def test_a_target_that_is_no_path_reaches_nobody(target: str) -> None:
    daemon = WebDaemon(PLACED)

    asked = daemon.get(target)

    assert asked.status in (307, 400, 404)
    assert daemon.children.started == []


@pytest.mark.parametrize("line", [b"GET /upstream/m/x\r\nX: y HTTP/1.1", b"GET /upstream/m/x\n HTTP/1.1"])
def test_a_line_end_in_a_target_is_refused(line: bytes) -> None:
    daemon = WebDaemon(PLACED)
    talk = Talk(daemon.connect())

    talk.end.send(line + b"\r\nHost: h\r\n\r\n")

    assert talk.status == 400
    assert daemon.children.started == []


@pytest.mark.parametrize(
    "path", [b"/..", b"/a/..", b"/../x", b"/%2e%2E/x", b"/a%2f..%2Fb", b"/a%5C..", b"/..;x/y"]
)
def test_a_way_up_is_found_however_it_is_written(path: bytes) -> None:
    with pytest.raises(BadRequest):
        check_stays(path)


@pytest.mark.parametrize(
    "path", [b"/", b"/a..b", b"/...", b"/.hidden", b"/a..", b"/..a", b"/%252e%252e/x", b"/x%20y"]
)
def test_dots_that_lead_nowhere_pass(path: bytes) -> None:
    check_stays(path)


def test_the_name_of_a_model_cannot_lead_out_either() -> None:
    daemon = WebDaemon('models: {"..": {cmd: serve up, proxy: "http://127.0.0.1:9001/pre"}}')

    daemon.get("/upstream/%2e%2e/x")
    daemon.ready()

    assert daemon.upstream().line == "GET /pre/x"
