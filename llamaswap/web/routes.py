"""Every path that the daemon answers: one table, one matcher.  Pure.

Matching is done on the escaped path, so that an escaped slash never splits a
segment; a `{rest}` at the end of a pattern takes everything that follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from urllib.parse import unquote_to_bytes


class Endpoint(Enum):
    """Who answers."""

    INFERENCE = auto()
    MODELS = auto()
    RUNNING = auto()
    UNLOAD_ALL = auto()  # the plain-text one of GET /unload
    UNLOAD_ALL_JSON = auto()
    UNLOAD_ONE = auto()
    UPSTREAM = auto()
    HEALTH = auto()
    VERSION = auto()
    METRICS = auto()
    ACTIVITY = auto()
    STATS = auto()
    LOGS = auto()
    LOG_STREAM = auto()
    ROOT = auto()
    LINKS = auto()
    FAVICON = auto()
    COMFYUI = auto()
    COMFYUI_PAGE = auto()
    PROFILES = auto()
    SWITCH_PROFILE = auto()
    CANCEL = auto()
    EVENTS = auto()
    CAPTURE = auto()
    PERFORMANCE = auto()
    HARDWARE = auto()
    LAUNCHES = auto()
    QUEUE = auto()
    TICKET = auto()
    MOVE_TICKET = auto()
    CANCEL_TICKET = auto()
    PAUSE = auto()
    RESUME = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One row of the table."""

    methods: tuple[bytes, ...]  # empty = any
    pattern: bytes  # exact, or ending in {rest}
    endpoint: Endpoint
    open: bool = False  # answered without an API key
    cut: bytes = b""  # prefix that the upstream does not see
    looks_only: bool = False  # never a job: may use a resident model past the queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A route that a request has found."""

    route: Route
    rest: bytes = b""  # what {rest} stands for, still escaped


@dataclass(frozen=True, slots=True)
class WrongMethod:
    """The path exists, the method does not."""

    allow: bytes  # value of the Allow field


def _post(*paths: str, cut: bytes = b"", looks_only: bool = False) -> Sequence[Route]:
    return [
        Route(
            methods=(b"POST",),
            pattern=path.encode(),
            endpoint=Endpoint.INFERENCE,
            cut=cut,
            looks_only=looks_only,
        )
        for path in paths
    ]


def _get(path: str, endpoint: Endpoint, *, open: bool = False, looks_only: bool = False) -> Route:  # noqa: A002 - as in Route
    return Route(
        methods=(b"GET", b"HEAD"), pattern=path.encode(), endpoint=endpoint, open=open, looks_only=looks_only
    )


ROUTES: tuple[Route, ...] = (
    *_post("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/embeddings"),
    *_post("/v1/rerank", "/v1/reranking", "/rerank", "/reranking", "/infill", "/completion"),
    *_post("/v1/audio/speech", "/v1/audio/voices", "/v1/audio/transcriptions"),
    *_post("/v1/images/generations", "/v1/images/edits", "/sdapi/v1/txt2img", "/sdapi/v1/img2img"),
    *_post("/audioapi/v1/tasks/run", cut=b"/audioapi"),
    *_post("/v/chat/completions", "/v/completions", "/v/responses", "/v/messages", cut=b"/v"),
    *_post("/v/embeddings", "/v/rerank", "/v/reranking", cut=b"/v"),
    *_post("/v1/messages/count_tokens", looks_only=True),
    *_post("/v/messages/count_tokens", cut=b"/v", looks_only=True),
    _get("/props", Endpoint.INFERENCE, looks_only=True),
    _get("/v1/audio/voices", Endpoint.INFERENCE, looks_only=True),
    _get("/sdapi/v1/loras", Endpoint.INFERENCE, looks_only=True),
    _get("/upstream", Endpoint.ROOT, open=True),
    Route(methods=(), pattern=b"/upstream/{rest}", endpoint=Endpoint.UPSTREAM),
    Route(methods=(), pattern=b"/comfyui", endpoint=Endpoint.COMFYUI_PAGE),
    Route(methods=(), pattern=b"/comfyui/{rest}", endpoint=Endpoint.COMFYUI),
    _get("/v1/models", Endpoint.MODELS),
    _get("/models", Endpoint.MODELS),
    _get("/running", Endpoint.RUNNING),
    _get("/unload", Endpoint.UNLOAD_ALL),
    Route(methods=(b"POST",), pattern=b"/api/models/unload", endpoint=Endpoint.UNLOAD_ALL_JSON),
    Route(methods=(b"POST",), pattern=b"/api/models/unload/{rest}", endpoint=Endpoint.UNLOAD_ONE),
    _get("/health", Endpoint.HEALTH, open=True),
    _get("/wol-health", Endpoint.HEALTH, open=True),
    _get("/metrics", Endpoint.METRICS),
    _get("/api/version", Endpoint.VERSION),
    _get("/api/metrics/activity", Endpoint.ACTIVITY),
    _get("/api/metrics/stats", Endpoint.STATS),
    _get("/logs", Endpoint.LOGS),
    _get("/logs/stream", Endpoint.LOG_STREAM),
    _get("/logs/stream/{rest}", Endpoint.LOG_STREAM),
    _get("/api/profiles", Endpoint.PROFILES),
    Route(methods=(b"PUT",), pattern=b"/api/profiles/active", endpoint=Endpoint.SWITCH_PROFILE),
    Route(methods=(b"POST",), pattern=b"/api/inflight/{rest}", endpoint=Endpoint.CANCEL),
    _get("/api/events", Endpoint.EVENTS),
    _get("/api/captures/{rest}", Endpoint.CAPTURE),
    _get("/api/performance", Endpoint.PERFORMANCE),
    _get("/api/hardware", Endpoint.HARDWARE),
    _get("/api/launches", Endpoint.LAUNCHES),
    _get("/api/queue", Endpoint.QUEUE),
    _get("/api/queue/{rest}", Endpoint.TICKET),
    Route(methods=(b"PATCH",), pattern=b"/api/queue/{rest}", endpoint=Endpoint.MOVE_TICKET),
    Route(methods=(b"DELETE",), pattern=b"/api/queue/{rest}", endpoint=Endpoint.CANCEL_TICKET),
    Route(methods=(b"POST",), pattern=b"/api/scheduler/pause", endpoint=Endpoint.PAUSE),
    Route(methods=(b"POST",), pattern=b"/api/scheduler/resume", endpoint=Endpoint.RESUME),
    _get("/favicon.ico", Endpoint.FAVICON, open=True),
    _get("/", Endpoint.ROOT, open=True),
    _get("/ui/", Endpoint.LINKS),
    _get("/ui/{rest}", Endpoint.LINKS),
)

_TAIL = b"{rest}"
_EXACT: dict[bytes, tuple[Route, ...]] = {}
for _route in ROUTES:
    if not _route.pattern.endswith(_TAIL):
        _EXACT[_route.pattern] = (*_EXACT.get(_route.pattern, ()), _route)
_PREFIXED = tuple(route for route in ROUTES if route.pattern.endswith(_TAIL))


def find_route(method: bytes, path: bytes) -> Match | WrongMethod | None:
    """Find the route of a request; None when nothing answers this path.

    Args:
        path: as received, escaped, without the query.
    """
    found = _EXACT.get(path)
    if found is None and b"%" in path:
        found = _EXACT.get(_decoded(path))
    if found is not None:
        return _choose(method, [Match(route=route) for route in found])
    rests = [(route, _rest(route, path)) for route in _PREFIXED]
    return _choose(method, [Match(route=route, rest=rest) for route, rest in rests if rest is not None])


def _rest(route: Route, path: bytes) -> bytes | None:
    """Return what a path has behind a route's own segments, still escaped; None if it has others."""
    own = route.pattern[: -len(_TAIL)]
    if path.startswith(own):
        return path[len(own) :]
    if b"%" not in path:
        return None
    depth = own.count(b"/")
    segments = path.split(b"/", depth)
    if len(segments) <= depth or _decoded(b"/".join(segments[:-1])) + b"/" != own:
        return None
    return segments[-1]


def _decoded(path: bytes) -> bytes:
    """Decode each segment; one that hides a slash matches no pattern of ours."""
    segments = [unquote_to_bytes(segment) for segment in path.split(b"/")]
    return b"" if any(b"/" in segment for segment in segments) else b"/".join(segments)


def _choose(method: bytes, matches: Sequence[Match]) -> Match | WrongMethod | None:
    for candidate in matches:
        if not candidate.route.methods or method in candidate.route.methods:
            return candidate
    if not matches:
        return None
    allowed = {name for candidate in matches for name in candidate.route.methods}
    return WrongMethod(b", ".join(sorted(allowed)))
