"""What reaches a model's server by path."""

from __future__ import annotations

import pytest

from llamaswap.web.upstream import remainder
from support.web_daemon import WebDaemon

NAMES = """
    routing: {scheduler: {use: serial}}
    models:
      a: {cmd: serve a, proxy: "http://127.0.0.1:9001", aliases: [nick, "sp ace", größe]}
      a/b: {cmd: serve a/b, proxy: "http://127.0.0.1:9002"}
      author/m2: {cmd: serve author/m2, proxy: "http://127.0.0.1:9003/pre"}
"""


@pytest.mark.parametrize(
    ("path", "model", "seen"),
    [
        ("/upstream/a/", "a", "/"),
        ("/upstream/a/x", "a", "/x"),
        ("/upstream/nick/x", "a", "/x"),
        ("/upstream/sp%20ace/x", "a", "/x"),
        ("/upstream/gr%C3%B6%c3%9Fe/x", "a", "/x"),
        ("/upstream/a/b/c", "a/b", "/c"),
        ("/upstream/a%2Fb/c", "a/b", "/c"),
        ("/upstream/a/c/b", "a", "/c/b"),
        ("/upstream/%61/x", "a", "/x"),
        ("/upstream/a/a%2Fb/c", "a", "/a%2Fb/c"),
        ("/upstream/a/%252F/x", "a", "/%252F/x"),
        ("/upstream/a/x?y=%zz&model=b", "a", "/x?y=%zz&model=b"),
        ("/upstream/a/x?", "a", "/x?"),
        ("/upstream/author/m2/x%20y", "author/m2", "/pre/x%20y"),
        ("/upstream/author%2Fm2/api/x%2Fy", "author/m2", "/pre/api/x%2Fy"),
        ("/upstream/a%2Fx", "a", "/x"),
    ],
)
def test_a_request_goes_to_the_longest_name_with_the_rest_as_it_was_written(
    path: str, model: str, seen: str
) -> None:
    daemon = WebDaemon(NAMES)

    asked = daemon.get(path)
    assert daemon.running == [model]
    daemon.ready()
    upstream = daemon.upstream()
    assert upstream.line == f"GET {seen}"
    upstream.answers(b"[]")

    assert asked.json == []
    assert daemon.rows == []


@pytest.mark.parametrize("path", ["/upstream/", "/upstream/ghost", "/upstream/ghost/x", "/upstream/A/x"])
def test_a_path_that_names_no_model_is_refused(path: str) -> None:
    asked = WebDaemon(NAMES).get(path)

    assert asked.status == 404
    assert asked.message == "model not found"


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/upstream/a", "/upstream/a/"),
        ("/upstream/nick", "/upstream/nick/"),
        ("/upstream/a/b?x=%zz&y", "/upstream/a/b/?x=%zz&y"),
        ("/upstream/author%2Fm2", "/upstream/author/m2/"),
        ("/upstream/sp%20ace", "/upstream/sp%20ace/"),
        ("/upstream/gr%c3%b6%c3%9fe?q", "/upstream/gr%C3%B6%C3%9Fe/?q"),
    ],
)
@pytest.mark.parametrize(("method", "status"), [("GET", 301), ("HEAD", 301), ("POST", 308), ("DELETE", 308)])
def test_a_bare_name_is_redirected_and_starts_nothing(
    path: str, location: str, method: str, status: int
) -> None:
    daemon = WebDaemon(NAMES)

    asked = daemon.request(method, path)

    assert asked.status == status
    assert asked.headers["location"] == location
    assert daemon.children.started == []


def test_a_path_that_may_not_start_a_model_is_refused_until_the_model_is_ready() -> None:
    daemon = WebDaemon()

    asked = daemon.get("/upstream/a/static/app.js?v=1")
    assert asked.status == 409
    assert asked.message == "model a is not loaded; path matches upstream.ignorePaths"
    assert daemon.children.started == []

    daemon.chat()
    assert daemon.get("/upstream/a/app.j%73").status == 409  # starting is not ready
    daemon.ready()
    daemon.upstream().answers()
    asked = daemon.get("/upstream/a/app.js")
    assert asked.waits


def test_paths_that_may_not_start_a_model_can_be_configured() -> None:
    daemon = WebDaemon("""
        upstream: {ignorePaths: ["^/api/"]}
        models: {a: {cmd: serve a, proxy: "http://127.0.0.1:9001"}}
    """)

    assert daemon.get("/upstream/a/api/x").status == 409
    assert daemon.get("/upstream/a/app.js").waits
    assert daemon.running == ["a"]


def test_the_model_is_told_by_the_path_alone_and_the_body_is_left_alone() -> None:
    daemon = WebDaemon(NAMES)
    upstream = daemon.warm()

    asked = daemon.post("/upstream/a/v1/chat/completions?x=1", {"model": "author/m2"})
    assert upstream.line == "POST /v1/chat/completions?x=1"
    assert upstream.body == b'{"model": "author/m2"}'
    upstream.answers(b'{"usage": {"prompt_tokens": 1}}')

    assert asked.status == 200
    (row,) = daemon.rows
    assert (row.model, row.req_path) == ("a", "/v1/chat/completions")
    assert row.usage.input_tokens == 1


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/probe"), ("PUT", "/v1/chat/completions"), ("GET", "/props")]
)
def test_only_posts_to_known_inference_paths_leave_a_row(method: str, path: str) -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()

    daemon.request(method, f"/upstream/a{path}", body=b"{}")
    upstream.answers()

    assert daemon.rows == []


@pytest.mark.parametrize(
    ("method", "path", "passes"),
    [
        ("GET", "/slots", True),
        ("HEAD", "/style.css", True),
        ("POST", "/tokenize", True),
        ("POST", "/detokenize", True),
        ("POST", "/apply-template", True),
        ("POST", "/v1/messages/count_tokens", True),
        ("POST", "/v1/chat/completions", False),
        ("DELETE", "/slots/1", False),
        ("POST", "/slots", False),
    ],
)
def test_what_only_looks_passes_the_queue_of_a_resident_model(
    method: str, path: str, *, passes: bool
) -> None:
    daemon = WebDaemon()
    daemon.warm()
    daemon.chat()

    daemon.request(method, f"/upstream/a{path}", body=b"{}")

    assert daemon.reactor.attempts == (1 if passes else 0)
    assert daemon.metric('llamaswap_scheduler_queue_depth{band="normal"}') == (0 if passes else 1)


def test_a_look_at_a_model_that_is_not_loaded_waits_its_turn() -> None:
    daemon = WebDaemon()
    daemon.warm("a")
    daemon.chat("a")

    daemon.get("/upstream/b/slots")

    assert daemon.running == ["a"]
    assert daemon.metric('llamaswap_scheduler_queue_depth{band="normal"}') == 1


@pytest.mark.parametrize(
    ("rest", "name", "path"),
    [
        (b"a", "a", b""),
        (b"a/", "a", b"/"),
        (b"%61/x", "a", b"/x"),
        (b"a%2fb%2Fc", "a/b", b"/c"),
        (b"a%2F%2Fb", "a", b"/%2Fb"),
        (b"gr%C3%B6%C3%9Fe/x", "größe", b"/x"),
    ],
)
def test_the_rest_of_a_path_begins_with_a_slash_or_is_empty(rest: bytes, name: str, path: bytes) -> None:
    assert remainder(rest, name) == path
