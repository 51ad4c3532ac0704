"""Which request gets which answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llamaswap.stub import answers, texts
from llamaswap.stub.options import Manner, Options, options_of
from llamaswap.stub.replies import Reply
from llamaswap.stub.switches import make_parser
from llamaswap.stub.wire import Request


def options(words: str = "") -> Options:
    return options_of(make_parser().parse_args(["--port", "1", "--alias", "m", *words.split()]), 1)


def request(method: str, target: str, body: bytes = b"", **fields: str) -> Request:
    headers = tuple((name.replace("_", "-"), value) for name, value in fields.items())
    return Request(method=method, target=target, protocol="HTTP/1.1", headers=headers, body=body)


def asks(path: str, **facts: Any) -> Request:
    return request("POST", path, json.dumps(facts).encode())


def at_the_door(asked: Request, words: str = "", *, ready: bool = True) -> Reply | None:
    return answers.at_the_door(asked, options(words), ready=ready)


def status(reply: Reply | None) -> int | None:
    return None if reply is None else reply.status


HEALTH, CHAT = request("GET", "/health"), asks("/v1/chat/completions")


def test_everything_is_unavailable_until_it_has_loaded() -> None:
    assert status(at_the_door(HEALTH, ready=False)) == 503
    assert status(at_the_door(CHAT, ready=False)) == 503
    assert status(at_the_door(HEALTH)) == 200
    assert at_the_door(CHAT) is None


def test_health_has_the_code_that_was_asked_for() -> None:
    assert status(at_the_door(HEALTH, "--health-code 404")) == 404
    assert at_the_door(request("GET", "/ready"), "--health-code 404") is None


@pytest.mark.parametrize(("words", "health"), [("--key k", 401), ("--key k --key-but-health", 200)])
def test_a_key_is_demanded(words: str, health: int) -> None:
    assert status(at_the_door(HEALTH, words)) == health
    assert status(at_the_door(CHAT, words)) == 401
    assert status(at_the_door(request("GET", "/health", Authorization="Bearer k"), words)) == 200
    assert status(at_the_door(request("POST", "/infill", Authorization="Bearer x"), words)) == 401


def test_only_the_paths_that_were_named_exist() -> None:
    words = "--only /v1/models,/infill"

    assert status(at_the_door(request("GET", "/"), words)) == 404
    assert status(at_the_door(request("GET", "/v1/models?x=1"), words)) == 200
    assert at_the_door(asks("/infill"), words) is None
    assert status(at_the_door(HEALTH, words)) == 200


@pytest.mark.parametrize("path", ["/v1/models", "/props", "/slots"])
def test_it_tells_of_itself(path: str) -> None:
    assert status(at_the_door(request("GET", path))) == 200
    assert at_the_door(request("POST", path)) is None


def test_who_asks_for_a_stream_gets_one_where_there_are_streams() -> None:
    manner = Manner()

    assert answers.stream(asks("/v1/messages", stream=True), "m", manner) is not None
    assert answers.stream(asks("/v1/messages", stream=False), "m", manner) is None
    assert answers.stream(asks("/v1/embeddings", stream=True), "m", manner) is None
    assert answers.stream(asks("/v1/messages", stream=True), "m", Manner(status=500)) is None


def test_a_big_line_comes_first() -> None:
    stream = answers.stream(asks("/v1/completions", stream=True), "m", Manner(big_line=500))

    assert stream is not None
    assert len(next(stream).encode(Manner())) == 502


def test_the_answer_calls_itself_as_it_was_called() -> None:
    body = json.loads(answers.whole(asks("/v1/chat/completions", model="x"), "m", Manner()).body)

    assert body["model"] == "x"
    assert answers.model_of(request("GET", "/"), "m") == "m"


def test_a_status_makes_an_error_of_it() -> None:
    reply = answers.whole(CHAT, "m", Manner(status=429))

    assert reply.status == 429
    assert json.loads(reply.body)["error"]["code"] == 429


def test_audio_comes_back_as_the_hash_of_its_file() -> None:
    body = b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nRIFF\r\n--b--\r\n'
    asked = request("POST", "/v1/audio/transcriptions", body, Content_Type="multipart/form-data; boundary=b")

    told = json.loads(answers.whole(asked, "m", Manner()).body)

    assert told["text"] == texts.digest(b"RIFF")


def test_anything_else_is_told_what_it_sent() -> None:
    told = json.loads(answers.whole(request("PUT", "/a?b", b"xyz", X_Odd="1"), "m", Manner()).body)

    assert (told["method"], told["path"], told["target"], told["size_bytes"]) == ("PUT", "/a", "/a?b", 3)
    assert told["headers"] == [["X-Odd", "1"]]
    assert told["sha256"] == texts.digest(b"xyz")


def test_headers_type_and_packing_are_those_asked_for(tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(b"abc")
    manner = Manner(file=str(tmp_path / "body"), type="text/x", cors="", headers=(("X-A", "b"),), gzip=True)

    plain = answers.whole(CHAT, "m", manner)
    packed = answers.whole(request("GET", "/", Accept_Encoding="gzip, br"), "m", manner)

    assert (plain.body, plain.type) == (b"abc", "text/x")
    assert plain.headers == (("X-A", "b"), ("Access-Control-Allow-Origin", ""))
    assert packed.headers == (*plain.headers, ("Content-Encoding", "gzip"))


def test_a_request_wishes_for_its_own_manner() -> None:
    assert answers.manner_of(request("GET", "/", X_Stub='{"tokens": 9}'), options("--gap 1")).tokens == 9
    with pytest.raises(ValueError, match="unknown x"):
        answers.manner_of(request("GET", "/", X_Stub='{"x": 9}'), options())
