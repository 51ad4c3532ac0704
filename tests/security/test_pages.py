"""What a request says stays text in every page, redirect, event and metric that repeats it."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from typing_extensions import override

import llamaswap
from llamaswap.errors import Refusal
from llamaswap.rendering import render
from llamaswap.telemetry.messages import message
from llamaswap.web.chatter import event as loading_event
from support.security_hostile import FORGED, texts, values
from support.web_daemon import TWO_MODELS, WebDaemon


class Tags(HTMLParser):
    """Notes which elements a page has, with their attributes, and its text."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page.decode("utf-8", "replace"))
        self.close()

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    @override
    def handle_data(self, data: str) -> None:
        self.text += data


def refusals() -> Iterator[type[Refusal]]:
    """Every kind of refusal that any module of ours defines."""
    for module in pkgutil.walk_packages(llamaswap.__path__, "llamaswap."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    waiting = [Refusal]
    while waiting:
        kind = waiting.pop()
        yield kind
        waiting += kind.__subclasses__()


def saying(kind: type[Refusal], text: str) -> Refusal:
    """A refusal of this kind whose message is `text`, however it makes its own."""
    refusal = kind.__new__(kind)
    Refusal.__init__(refusal, text)
    return refusal


KINDS = sorted(set(refusals()), key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", KINDS)
def test_no_refusal_can_say_anything_but_text(kind: type[Refusal]) -> None:
    assert len(KINDS) > 20
    for text in FORGED:
        refusal = saying(kind, text)
        envelope = json.loads(render(refusal).body)
        assert envelope["error"]["message"] == text
        assert render(refusal).body.isascii()
        if not kind.always_json:
            page = Tags(render(refusal, "text/html").body)
            assert [tag for tag, _ in page.tags] == ["html", "body", "h1", "p"]
            assert text.replace("\r", "\n").strip() in page.text.replace("\r", "\n")
            assert dict(render(refusal, "text/plain").headers)[b"Content-Type"] == b"text/plain"
        for _, value in render(refusal).headers:
            assert value.isascii() and b"\r" not in value and b"\n" not in value


@given(texts)
@settings(max_examples=50, deadline=None)
def test_a_name_comes_back_as_text_in_an_error_page(text: str) -> None:
    daemon = WebDaemon()
    for accept in ("text/html", "application/json", "text/plain"):
        asked = daemon.request(
            "PUT",
            "/api/profiles/active",
            headers={"Accept": accept},
            body=json.dumps({"name": text or "x"}).encode(),
        )
        assert asked.status == 404
        assert asked.headers["content-type"] == accept
        if accept == "text/html":
            assert [tag for tag, _ in Tags(asked.body).tags] == ["html", "body", "h1", "p"]


# Redirects

PIECES = [
    *("/", "//", "///", "\\", "/\\", ".", "..", "/..", "%2e%2e", "%2f", "%5c", "%0d%0aSet-Cookie:x", "evil"),
    *("http:", "https://", "@", "user:pw@", ":80", "?", "#", "&", '"', "'", "<script>", ">", ";", "%", "%zz"),
    *("ui", "upstream", "a", "comfyui", "javascript:", "\u00e9", "\u2028", "*"),
]
targets = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


@given(targets, st.sampled_from(["GET", "HEAD", "POST", "PUT"]), st.sampled_from(["/", "http://evil/", ""]))
@settings(max_examples=120, deadline=None)
@example("/evil/..", "GET", "/")
@example("\\evil//x", "GET", "/")
@example("\\/evil/.", "GET", "/")
@example("/evil/upstream", "GET", "http://user:pw@evil/")
@example("upstream/a?<script>", "GET", "/")
@example("ui", "GET", "/")
def test_a_redirect_never_leads_to_another_site_nor_out_of_its_line(
    target: str, method: str, start: str
) -> None:
    asked = WebDaemon().request(method, start + target)
    if asked.waits:
        return  # a path that starts a model
    head = asked.raw.partition(b"\r\n\r\n")[0]
    names = [line.partition(b":")[0].lower() for line in head.split(b"\r\n")[1:]]
    assert b"set-cookie" not in names
    if b"location" not in names:
        return

    place = asked.headers["location"]
    assert place.isascii() and place.isprintable()
    assert place.startswith("/")
    assert not place.startswith(("//", "/\\"))
    if asked.body:
        ((tag, attributes),) = Tags(asked.body).tags
        assert (tag, attributes) == ("a", {"href": place})


# Event streams


def events_of(raw: bytes) -> list[dict[str, object]]:
    """The messages of an event stream, each of exactly the two lines that it must have."""
    blocks = raw.split(b"\n\n")
    assert blocks.pop() == b""
    shown = []
    for block in blocks:
        kind, data = block.split(b"\n")
        assert kind == b"event:message"
        assert b"\r" not in block
        shown.append(json.loads(data.removeprefix(b"data:")))
    return shown


@given(texts, values)
@settings(max_examples=40, deadline=None)
def test_an_event_is_always_the_two_lines_that_it_is(text: str, value: str) -> None:
    daemon = WebDaemon()
    watching = daemon.get("/api/events")
    daemon.request(
        "POST",
        "/v1/chat/completions?" + quote(value),
        headers={"User-Agent": value, "X-Odd": value, "X-Forwarded-For": value},
        body=b'{"model":"a"}',
    )
    daemon.child.output(text.encode() + b"\xff\r\n\r\nevent:message\ndata:{}\n\n")
    daemon.books.proxy.append(text.encode())
    daemon.ready()
    daemon.upstream().answers(text.encode(), "500 Oh", kind="text/plain", more="X-Odd: \xe2\x80\xa8\r\n")
    daemon.post("/v1/chat/completions", {"model": text})
    daemon.reactor.advance(1.0)

    shown = events_of(b"".join(watching.pieces))

    kinds = {str(one["type"]) for one in shown}
    assert {"logData", "modelStatus", "inflight", "activity", "queueStatus"} <= kinds
    assert all(isinstance(json.loads(str(one["data"])), dict | list) for one in shown)


@pytest.mark.parametrize("text", FORGED)
def test_no_text_ends_an_event_early(text: str) -> None:
    told = message("logData", {"data": text})
    assert events_of(told) == [
        {"type": "logData", "data": json.dumps({"data": text}, ensure_ascii=False, separators=(",", ":"))}
    ]
    said = loading_event(text)
    assert said.count(b"\n") == 2
    assert said.decode().splitlines() == [said.decode().rstrip("\n"), ""]


# Metrics


def labels(text: bytes, name: str) -> set[str]:
    """The values of one label in an exposition, which must be readable as one."""
    families = text_string_to_metric_families(text.decode())
    return {sample.labels[name] for family in families for sample in family.samples if name in sample.labels}


@given(texts, st.integers(200, 999))
@settings(max_examples=40, deadline=None)
def test_no_client_chooses_a_label(text: str, status: int) -> None:
    daemon = WebDaemon()
    daemon.post("/v1/chat/completions", {"model": text or "x"}, **{"X-LlamaSwap-Priority": "9"})
    asked = daemon.chat()
    daemon.ready()
    daemon.upstream().answers(b"{}", f"{status} x")
    assert asked.status == status
    shown = daemon.get("/metrics").body

    assert labels(shown, "model") <= {"a", "b", "unknown"}
    assert labels(shown, "band") == {"batch", "normal", "interactive"}
    assert all(code.isdigit() and len(code) == 3 for code in labels(shown, "code"))


@pytest.mark.parametrize("text", [text for text in FORGED if "$" not in text])
def test_a_configured_name_is_escaped_in_the_metrics(text: str) -> None:
    config = json.dumps(
        {
            "models": {text: {"cmd": "serve x", "proxy": "http://127.0.0.1:9001"}},
            "routing": {"scheduler": {"use": "serial"}},
        }
    )
    daemon = WebDaemon(config)

    assert text in labels(daemon.get("/metrics").body, "model")


def test_the_page_of_links_holds_nothing_of_a_request() -> None:
    daemon = WebDaemon(TWO_MODELS)

    plain = daemon.get("/ui/").body

    assert daemon.request("GET", "/ui/?<script>", headers={"Referer": "<script>"}).body == plain
    assert b"<script" not in daemon.get("/ui/%3Cscript%3E/x").body
