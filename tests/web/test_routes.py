"""Which requests reach which endpoint, row by row of the table."""

from __future__ import annotations

import pytest

from llamaswap.web.routes import ROUTES, Endpoint, Match, WrongMethod, find_route

MODEL_POSTS = [
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/completions",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/embeddings",
    "/reranking",
    "/rerank",
    "/v1/rerank",
    "/v1/reranking",
    "/infill",
    "/completion",
    "/v1/audio/speech",
    "/v1/audio/voices",
    "/v1/images/generations",
    "/sdapi/v1/txt2img",
    "/sdapi/v1/img2img",
    "/audioapi/v1/tasks/run",
    "/v/chat/completions",
    "/v/responses",
    "/v/completions",
    "/v/messages",
    "/v/messages/count_tokens",
    "/v/embeddings",
    "/v/rerank",
    "/v/reranking",
    "/v1/audio/transcriptions",
    "/v1/images/edits",
]
MODEL_GETS = ("/v1/audio/voices", "/sdapi/v1/loras", "/props")
PAGES = [
    ("/v1/models", Endpoint.MODELS),
    ("/models", Endpoint.MODELS),
    ("/logs", Endpoint.LOGS),
    ("/logs/stream", Endpoint.LOG_STREAM),
    ("/logs/stream/", Endpoint.LOG_STREAM),
    ("/logs/stream/author/m%2F2", Endpoint.LOG_STREAM),
    ("/health", Endpoint.HEALTH),
    ("/wol-health", Endpoint.HEALTH),
    ("/", Endpoint.ROOT),
    ("/ui/", Endpoint.LINKS),
    ("/ui/models", Endpoint.LINKS),
    ("/metrics", Endpoint.METRICS),
    ("/unload", Endpoint.UNLOAD_ALL),
    ("/running", Endpoint.RUNNING),
    ("/api/version", Endpoint.VERSION),
    ("/api/metrics/activity", Endpoint.ACTIVITY),
    ("/api/metrics/stats", Endpoint.STATS),
    ("/api/queue", Endpoint.QUEUE),
    ("/api/queue/17", Endpoint.TICKET),
]


def match(method: str, path: str) -> Match:
    """The route that a request finds."""
    found = find_route(method.encode(), path.encode())
    assert isinstance(found, Match), found
    return found


@pytest.mark.parametrize("path", MODEL_POSTS)
def test_a_post_of_the_model_routes_is_an_inference_call(path: str) -> None:
    found = match("POST", path)

    assert found.route.endpoint is Endpoint.INFERENCE
    assert not found.route.open
    assert found.route.cut == (
        b"/v" if path.startswith("/v/") else b"/audioapi" if "audioapi" in path else b""
    )
    assert found.route.looks_only == path.endswith("count_tokens")


@pytest.mark.parametrize("path", MODEL_GETS)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_get_of_the_model_routes_only_looks(method: str, path: str) -> None:
    found = match(method, path)

    assert found.route.endpoint is Endpoint.INFERENCE
    assert found.route.looks_only


@pytest.mark.parametrize(("path", "endpoint"), PAGES)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_page_answers_get_and_head(method: str, path: str, endpoint: Endpoint) -> None:
    assert match(method, path).route.endpoint is endpoint


def test_only_these_are_open_to_everybody() -> None:
    assert {route.pattern for route in ROUTES if route.open} == {
        b"/",
        b"/favicon.ico",
        b"/health",
        b"/upstream",
        b"/wol-health",
    }


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PROPFIND"])
def test_everything_below_upstream_is_passed_on(method: str) -> None:
    found = match(method, "/upstream/author%2Fm2/a%20b//c%2Fd")

    assert found.route.endpoint is Endpoint.UPSTREAM
    assert found.rest == b"author%2Fm2/a%20b//c%2Fd"


def test_a_single_model_is_unloaded_by_the_rest_of_the_path() -> None:
    assert match("POST", "/api/models/unload").route.endpoint is Endpoint.UNLOAD_ALL_JSON
    found = match("POST", "/api/models/unload/author/m2")
    assert (found.route.endpoint, found.rest) == (Endpoint.UNLOAD_ONE, b"author/m2")


@pytest.mark.parametrize(
    ("method", "path", "endpoint"),
    [
        ("PATCH", "/api/queue/17", Endpoint.MOVE_TICKET),
        ("DELETE", "/api/queue/17", Endpoint.CANCEL_TICKET),
        ("POST", "/api/scheduler/pause", Endpoint.PAUSE),
        ("POST", "/api/scheduler/resume", Endpoint.RESUME),
    ],
)
def test_the_queue_has_its_buttons(method: str, path: str, endpoint: Endpoint) -> None:
    assert match(method, path).route.endpoint is endpoint


@pytest.mark.parametrize(
    "path",
    [
        "/does-not-exist",
        "/health/",
        "/v1/models/",
        "/v1/models/m1",
        "/V1/models",
        "/v1/chat%2Fcompletions",
        "/v/chat",
        "/v/v1/chat/completions",
        "/api/metrics",
        "/slots",
        "/tokenize",
        "/v1/audio/translations",
        "/logs/streamSSE",
        "/upstreams",
        "*",
        "",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_any_other_path_is_not_found(method: str, path: str) -> None:
    assert find_route(method.encode(), path.encode()) is None


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/v1/chat/completions", b"POST"),
        ("PUT", "/v1/audio/voices", b"GET, HEAD, POST"),
        ("POST", "/unload", b"GET, HEAD"),
        ("POST", "/props", b"GET, HEAD"),
        ("POST", "/v1/models", b"GET, HEAD"),
        ("DELETE", "/logs/stream/m1", b"GET, HEAD"),
        ("GET", "/api/models/unload", b"POST"),
        ("GET", "/api/models/unload/m1", b"POST"),
        ("POST", "/", b"GET, HEAD"),
        ("get", "/health", b"GET, HEAD"),
        ("POST", "/api/queue", b"GET, HEAD"),
        ("PUT", "/api/queue/17", b"DELETE, GET, HEAD, PATCH"),
        ("GET", "/api/scheduler/pause", b"POST"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(method: str, path: str, allow: bytes) -> None:
    assert find_route(method.encode(), path.encode()) == WrongMethod(allow)


@pytest.mark.parametrize("path", ["/%761/models", "/v1/m%6Fdels", "/%6d%6F%64els"])
def test_escapes_within_a_segment_are_read(path: str) -> None:
    assert match("GET", path).route.endpoint is Endpoint.MODELS


def test_every_route_can_be_found_by_its_own_pattern() -> None:
    for route in ROUTES:
        path = route.pattern.decode().replace("{rest}", "x/y")
        for method in route.methods or (b"PATCH",):
            assert match(method.decode(), path).route == route
