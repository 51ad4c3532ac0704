"""Cases from the field: what a name means, and requests that name nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from support.field import Field, stub
from support.field_call import CHAT
from support.real_daemon_talk import Wire, ask, json_fields, request_bytes

pytestmark = pytest.mark.integration

NAMES = ("a", "a/b", "a/b/c:Q4_K_M", "x:y", "with space", "ünï", "100%", "a?b", "..")
HIDDEN = "what-the-server-calls-it"

INFERENCE = (
    CHAT,
    "/v1/responses",
    "/v1/completions",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/embeddings",
    "/rerank",
    "/v1/reranking",
    "/infill",
    "/completion",
    "/v1/audio/speech",
    "/v1/audio/transcriptions",
    "/v1/images/edits",
    "/sdapi/v1/txt2img",
    "/audioapi/v1/tasks/run",
    "/v/chat/completions",
)


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    """A model for each odd name, all of them loaded side by side."""
    models = {name: stub(vram=False, unloadTimeout=5) for name in NAMES}
    models["x:y"] = stub(vram=False, useModelName=HIDDEN)
    config = {
        "groups": {"all": {"swap": False, "exclusive": False, "members": list(NAMES)}},
        "routing": {"scheduler": {"use": "fifo"}},
        "profiles": {"x": {"pins": {"y": "a"}}},
    }
    with Field(tmp_path_factory.mktemp("names"), models, config=config) as field:
        calls = field.together([field.prepare(name) for name in NAMES])
        assert [call.wait().wrong() for call in calls] == [""] * len(NAMES)
        assert {name: field.starts(name) for name in NAMES} == dict.fromkeys(NAMES, 1)
        yield field


def served_by(field: Field, tag: str) -> list[str]:
    """Whose stub got a request."""
    return [note["alias"] for note in field.records("arrived", tag=tag)]


def test_case_080_a_name_in_a_body_means_its_model_whatever_is_in_it(named: Field) -> None:
    for number, name in enumerate(NAMES):
        assert named.chat(name, tag=f"body {number}").wrong() == ""
        assert served_by(named, f"body {number}") == [name]
    assert named.starts() == len(NAMES)


def test_case_080_the_server_reads_its_own_name_where_it_has_one(named: Field) -> None:
    assert named.chat("x:y", tag="hidden").json["model"] == HIDDEN
    assert named.chat("a/b", tag="open").json["model"] == "a/b"
    assert [row["model"] for row in named.rows()[-2:]] == ["x:y", "a/b"], "and nobody else does"


@pytest.mark.parametrize("safe", ["/:", ""], ids=["plain", "escaped"])
def test_case_080_a_name_in_a_path_means_its_model(safe: str, named: Field) -> None:
    """`..` stands for itself only as `%2E%2E`, and not even so: a path is cleaned before it is looked at."""
    for name in NAMES[:-1]:
        answer = named.get(f"/upstream/{quote(name, safe=safe)}/v1/models?a=%2F")
        assert answer.status == 200, name
        assert answer.json["data"][0]["id"] == name
    assert named.records("request")[-1]["target"] == "/v1/models?a=%2F"


def test_case_080_the_longest_name_that_a_path_begins_with_counts(named: Field) -> None:
    for path, name, rest in (
        ("a/b/c:Q4_K_M/x", "a/b/c:Q4_K_M", "/x"),
        ("a/b/c/x", "a/b", "/c/x"),
        ("a/bb/x", "a", "/bb/x"),
        ("a%2Fb/c%2Fx", "a/b", "/c%2Fx"),
        ("a//x", "a", "/x"),
    ):
        answer = named.get(f"/upstream/{path}")
        if answer.status == 307:
            answer = named.get(answer.headers["Location"])
        assert answer.json["model"] == name, path
        assert answer.json["target"] == rest, path


def test_case_080_dots_cannot_climb_out_of_a_path(named: Field) -> None:
    answer = named.get("/upstream/a/../../running")

    assert (answer.status, answer.headers["Location"]) == (307, "/running")


def test_case_080_any_name_can_be_unloaded_listed_and_listened_to(named: Field) -> None:
    for name in NAMES[:-1]:
        with Wire(named.daemon.port) as wire:
            wire.send(request_bytes("GET", f"/logs/stream/{quote(name, safe='/')}"))
            assert wire.read_until(b"\r\n").startswith(b"HTTP/1.1 200 "), name
    assert set(named.running()) == set(NAMES)
    listed = {model["id"]: model["status"]["value"] for model in named.get("/v1/models").json["data"]}
    assert listed == dict.fromkeys(NAMES, "loaded")

    unloads = [
        named.visit(f"/api/models/unload/{quote(name, safe=safe)}", "POST")
        for name, safe in (("a/b", "/"), ("a/b/c:Q4_K_M", ""), ("100%", ""), ("a?b", ""))
    ]
    named.together(unloads)
    assert [unload.wait().status for unload in unloads] == [200] * 4
    assert set(named.running()) == set(NAMES) - {"a/b", "a/b/c:Q4_K_M", "100%", "a?b"}
    assert named.get("/logs/stream/nobody").status == 400
    assert named.post("/api/models/unload/a/nobody").status == 404
    assert named.post("/api/models/unload/a/nobody").error == "model not found"
    assert named.get("/upstream/b/x").error == "model not found"


def test_case_089_pages_that_routers_offer_load_nothing(named: Field) -> None:
    """`/props?model=` of a model that is not loaded does load it: that is how llama-swap answers it."""
    starts, loaded = named.starts(), set(named.running())

    for path in ("/models", "/v1/models"):
        assert {model["id"] for model in named.get(path).json["data"]} == set(NAMES)
    assert named.get("/props").status == 404
    assert named.get("/props").error == "no model id could be identified"
    for name in ("a", "x:y"):
        props = named.get(f"/props?model={quote(name, safe='')}")
        assert (props.status, props.json["model_alias"]) == (200, name)
    assert named.get("/props?model=nobody").status == 404
    assert ask(named.daemon.port, "HEAD", "/props?model=a").status == 200
    assert named.post("/props?model=a", b"{}").status == 405

    assert (named.starts(), set(named.running())) == (starts, loaded)


ODD_MODELS = {
    "unknown": "gpt-5",
    "profile": "gemma:27b",
    "slash": "nobody/nothing",
    "blank": " a",
    "case": "A",
    "nul": "a\0",
    "macro": "${PORT}",
    "long": "n" * 100_000,
    "odd": "\ud83d\ude00é\n\r\x1b[31m",
}
NO_MODELS: tuple[object, ...] = ("", None, [], {}, [1, 2])


@pytest.mark.parametrize("path", INFERENCE)
def test_case_088_an_unknown_model_is_404_and_one_line_of_the_log(path: str, named: Field) -> None:
    """llama-swap says 404 where others say 400, and clients may rely on it."""
    assert named.chat(f"last before {path}", path=path).status == 404
    named.until(lambda: named.log(f"model=last before {path} "), "the lines of earlier tests to be out")
    failed, rows = len(named.log("inference.failed")), len(named.rows())
    calls = {kind: named.chat(name, path=path, tag=kind) for kind, name in ODD_MODELS.items()}

    for kind, call in calls.items():
        assert call.status == 404, (kind, call)
        error = call.json["error"]
        assert error["message"] == "no router for requested model", kind
        assert (error["type"], error["code"], error["param"]) == ("invalid_request_error", "not_found", None)
    told = failed + len(ODD_MODELS)
    named.until(lambda: len(named.log("inference.failed")) >= told, "a line for each")
    assert len(named.log("inference.failed")) == told, "and each stays on its line"
    assert len(named.rows(rows + len(ODD_MODELS))) == rows + len(ODD_MODELS)


@pytest.mark.parametrize("path", INFERENCE)
def test_case_088_a_request_without_a_model_is_404(path: str, named: Field) -> None:
    bodies = [json.dumps({"model": model}).encode() for model in NO_MODELS[:2]]
    bodies += [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"7",
        b'"a"',
        b'{"model":',
        b'{"model": "a',
        b"\xff\xfe\x00",
        b"{" * 999,
    ]
    for body in bodies:
        answer = ask(named.daemon.port, "POST", path, body, json_fields())
        assert answer.status == 404, body
        assert answer.error == "no model id could be identified"
    for model in NO_MODELS[2:]:
        answer = ask(named.daemon.port, "POST", path, json.dumps({"model": model}).encode(), json_fields())
        assert answer.status == 404, model


def test_case_088_a_name_as_long_as_a_head_may_be_is_refused_wherever_it_stands(named: Field) -> None:
    name = "n" * 60_000
    for path in (f"/upstream/{name}/x", f"/props?model={name}", f"/logs/stream/{name}", f"/comfyui/{name}"):
        assert named.get(path).status in (400, 404), path[:20]
    assert named.post(f"/api/models/unload/{name}").status == 404
    failed = [line for line in named.log("inference.failed") if "nnnn" in line]
    assert failed
    assert max(map(len, failed)) < 1_000, "and the log is not flooded"
    assert max(len(row["model"]) for row in named.rows()) < 1_000


def test_case_088_labels_are_not_made_of_names_that_callers_choose(named: Field) -> None:
    requests = [sample for sample in named.daemon.metrics() if sample.startswith("llamaswap_requests_total")]

    assert any(
        'model="unknown",code="404"' in sample or 'code="404",model="unknown"' in sample
        for sample in requests
    )
    assert not any("gpt-5" in sample or "nnnn" in sample for sample in requests)
