"""Credentials, bodies, paths and the environment are shown to nobody whom they do not concern."""

from __future__ import annotations

import ast
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import llamaswap
from llamaswap.activity.store import ActivityStore
from llamaswap.config.load import load
from llamaswap.metering.headers import REDACTED, shown_headers
from llamaswap.web.routes import ROUTES
from support.activity_rows import add_all
from support.security_hostile import FORGED, logged
from support.web_daemon import WebDaemon, basic
from support.web_talk import Talk

SECRET = "s3same-9d1f"
OPEN = {"Authorization": f"Bearer {SECRET}"}


def one_call(daemon: WebDaemon, fields: dict[str, str]) -> Talk:
    """A call that has a secret wherever a client puts one, and an answer with another."""
    asked = daemon.request(
        "POST",
        f"/v1/chat/completions?api_key={SECRET}&key={SECRET}&token={SECRET}",
        headers=fields,
        body=b'{"model":"a"}',
    )
    daemon.ready()
    daemon.upstream().answers(more=f"Set-Cookie: session={SECRET}\r\n")
    return asked


CREDENTIALS = {
    "Authorization": f"Bearer {SECRET}",
    "X-API-Key": SECRET,
    "Cookie": f"session={SECRET}",
    "Proxy-Authorization": basic("x", SECRET),
}


def test_a_secret_stands_in_no_log_event_capture_row_or_metric() -> None:
    daemon = WebDaemon(api_keys=(SECRET,))
    with logged(daemon):
        watching = daemon.get("/api/events", **OPEN)
        assert one_call(daemon, CREDENTIALS).status == 200
        daemon.request(
            "POST", f"/v1/chat/completions?key={SECRET}", headers={"X-API-Key": f"{SECRET}x"}, body=b"{}"
        )
        daemon.request("POST", "/v1/chat/completions", headers=CREDENTIALS, body=b'{"model":"none"}')
        daemon.reactor.advance(1.0)

    paths = ("/logs", "/metrics", "/running", "/api/metrics/activity", "/api/captures/1", "/api/launches")
    pages = {path: daemon.get(path, **OPEN) for path in paths}
    assert {path: page.status for path, page in pages.items()} == dict.fromkeys(paths, 200)
    assert pages["/api/captures/1"].json["req_headers"]["X-Api-Key"] == REDACTED
    assert pages["/api/captures/1"].json["resp_headers"]["Set-Cookie"] == REDACTED
    assert b"[REDACTED]" in watching.raw
    for name, raw in {"events": watching.raw, **{path: page.raw for path, page in pages.items()}}.items():
        assert SECRET.encode() not in raw, name
    assert SECRET not in repr(daemon.rows)


@pytest.mark.parametrize(
    "name",
    [
        "Api-Key",
        "X-Goog-Api-Key",
        "ApiKey",
        "Ocp-Apim-Subscription-Key",
        "X-Auth-Key",
        "X-Access-Key",
        "X-Functions-Key",
        "X-Authorization",
        "X-Forwarded-Authorization",
        "X-Auth-Token",
        "X-Amz-Security-Token",
        "CF-Access-Client-Secret",
        "X-Password",
    ],
)
def test_other_fields_that_carry_credentials_are_redacted_too(name: str) -> None:
    assert list(shown_headers([(name.encode(), b"s3cret")]).values()) == [REDACTED]


def test_the_store_on_disk_holds_neither_bodies_nor_queries_nor_fields(tmp_path: Path) -> None:
    daemon = WebDaemon()
    asked = daemon.request(
        "POST",
        "/infill?q=QUERYMARK",
        headers={"X-Odd": "FIELDMARK"},
        body=b'{"model":"a","prompt":"BODYMARK"}',
    )
    daemon.ready()
    daemon.upstream().answers(b'{"content":"ANSWERMARK"}', more="X-Odd: OTHERMARK\r\n")
    assert asked.status == 200
    store = ActivityStore(str(tmp_path / "activity.db"), 1000)
    add_all(store, daemon.rows)
    store.close()

    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())

    assert b"/infill" in written
    assert b"MARK" not in written
    (columns,) = sqlite3.connect(tmp_path / "activity.db").execute(
        "SELECT group_concat(name) FROM pragma_table_info('activity')"
    )
    assert not {"body", "headers", "query", "prompt"} & set(columns[0].split(","))


WRITERS = {"activity/opening.py"}  # the store
WRITING_CALLS = {"write_text", "write_bytes", "mkdir", "touch", "mkstemp", "makedirs", "NamedTemporaryFile"}


def test_nothing_but_the_store_is_written_to_disk() -> None:
    package = Path(llamaswap.__file__).parent
    writers = set()
    for path in package.rglob("*.py"):
        name = str(path.relative_to(package))
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (isinstance(node, ast.Call) and _writes(node)) or (
                isinstance(node, ast.Attribute) and node.attr == "O_CREAT"
            ):
                writers.add(name)

    assert {name for name in writers if not name.startswith("stub/")} <= WRITERS


def _writes(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
    if name == "open" and ast.unparse(call.func) != "os.open":
        modes = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
        return any(isinstance(mode, str) and set(mode) & set("wax+") for mode in modes)
    return name in WRITING_CALLS or (
        ast.unparse(call.func) == "sqlite3.connect" and "?mode=ro" not in ast.unparse(call)
    )


def test_the_store_is_made_for_its_owner_only(tmp_path: Path) -> None:
    store = ActivityStore(str(tmp_path / "activity.db"), 1000)

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    store.close()

    assert modes
    assert set(modes.values()) == {0o600}


# What refusals say

ENVIRON = {
    "HOME": "/home/zaphod-h0me",
    "PATH": "/opt/zaphod-p4th",
    "KEY_OF_OURS": SECRET,
    "KEY_OF_PEER": "p33r-77aa",
    "HF_TOKEN": "hf-42bb",
    "UNUSED": "unus3d-11cc",
}
CONFIG = """
apiKeys: ["${env.KEY_OF_OURS}"]
models:
  a:
    cmd: serve a
    proxy: http://127.0.0.1:9001
    env: ["HF_TOKEN=${env.HF_TOKEN}"]
  b: {cmd: serve b, proxy: "http://127.0.0.1:9002"}
peers:
  far: {proxy: "http://127.0.0.1:9003", apiKey: "${env.KEY_OF_PEER}", models: [p]}
profiles: {one: {pins: {x: a}}}
"""


def hostile_paths() -> Iterator[tuple[str, str]]:
    """Every route with every kind of nonsense in its tail and in its query."""
    for route in ROUTES:
        methods = [method.decode() for method in route.methods] or ["GET", "POST"]
        for method in (*methods, "DELETE"):
            plain = route.pattern.decode()
            for rest in ("", "a", "a/x", "none/%00", "%ff%fe", "far/p/x", "..%2f..%2fetc", "9" * 30, "-1"):
                yield method, plain.replace("{rest}", rest)
                if "{rest}" not in plain:
                    break
            yield (
                method,
                plain.replace("{rest}", "a") + "?model=none&limit=x&after=%ff&min_id=-1&sort=;&model=%00",
            )


def test_no_answer_tells_of_the_configurations_file_the_home_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "zaphod-c0nfig.yaml"
    file.write_text(CONFIG)
    daemon = WebDaemon(load(file, None, ENVIRON))
    hidden = [str(tmp_path), file.name, *ENVIRON.values()]
    daemon.chat("a", **OPEN)
    daemon.ready()
    daemon.upstream().dies()  # an upstream that breaks is told of, too
    daemon.children.refusal = "no room"
    said: list[Talk] = []
    for method, path in hostile_paths():
        bodies = (b'{"model":"b"}', b'{"model":"far/p"}', b"\xff{", b'{"name":"x"}', b'{"name":7}')
        for body in bodies if method in ("POST", "PUT") else (None,):
            ways: tuple[dict[str, str], ...] = (OPEN, {**OPEN, "Accept": "text/html"}, {})
            said += [daemon.request(method, path, headers=fields, body=body) for fields in ways]
    while daemon.reactor.attempts:
        daemon.reactor.refuse(ConnectionRefusedError("111"))
    daemon.reactor.advance(10)

    assert len(said) > 500
    for talk in said:
        for secret in hidden:
            assert secret.encode() not in talk.raw, talk.raw
        assert b"Traceback" not in talk.raw and b"/llamaswap/" not in talk.raw


@pytest.mark.parametrize("text", FORGED)
def test_a_handler_that_breaks_says_nothing_of_why(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    daemon = WebDaemon()

    def broken(*_: object) -> bytes:
        raise RuntimeError(f"{text} {SECRET}")

    monkeypatch.setattr(daemon.engine.metrics, "render", broken)
    asked = daemon.get("/metrics")

    assert asked.status == 500
    assert SECRET.encode() not in asked.raw


def test_a_peers_own_key_replaces_the_clients_and_is_shown_to_nobody() -> None:
    daemon = WebDaemon(
        CONFIG.replace("${env.KEY_OF_OURS}", SECRET)
        .replace("${env.KEY_OF_PEER}", "p33r")
        .replace("${env.HF_TOKEN}", "x")
    )
    asked = daemon.request("POST", "/v1/chat/completions", headers=CREDENTIALS, body=b'{"model":"far/p"}')
    upstream = daemon.upstream()

    fields = dict(upstream.fields)
    assert fields["Authorization"] == "Bearer p33r"
    assert fields["X-Api-Key"] == "p33r"
    assert "Proxy-Authorization" not in fields
    upstream.answers()
    assert asked.status == 200
    shown = [daemon.get(path, **OPEN).raw for path in ("/api/captures/1", "/logs", "/v1/models", "/running")]
    assert all(b"p33r" not in raw for raw in shown)


def test_the_listing_of_what_runs_is_the_only_page_that_shows_a_command() -> None:
    daemon = WebDaemon("models: {a: {cmd: serve --api-key C0MMAND, proxy: 'http://127.0.0.1:9001'}}")
    daemon.chat()
    daemon.ready()
    daemon.upstream().answers()

    pages = [
        route.pattern.decode() for route in ROUTES if b"GET" in route.methods and b"{" not in route.pattern
    ]
    telling = [path for path in pages if b"C0MMAND" in daemon.get(path).raw]

    assert telling == ["/running"]


PASSWORDS = """
    models: {a: {cmd: serve a, proxy: "URL"}}
    peers: {p: {proxy: "URL", models: [far]}}
"""


@pytest.mark.parametrize(
    "url", ["http://u:{}@127.0.0.1:9001/", "ftp://u:{}@h:1", "http://{}@", "http://{}@h:99999"]
)
def test_a_password_in_a_url_is_shown_to_nobody(url: str) -> None:
    """It is sent to nobody either, and of a wrong URL the error would tell."""
    daemon = WebDaemon(PASSWORDS.replace("URL", url.format(SECRET)))
    with logged(daemon):
        asked = [daemon.post("/v1/chat/completions", {"model": name}) for name in ("a", "p/far")]
        pages = [daemon.get(path) for path in ("/running", "/logs", "/v1/models", "/api/metrics/activity")]

    assert {page.status for page in pages} == {200}
    for talk in (*asked, *pages):
        assert SECRET.encode() not in talk.raw
