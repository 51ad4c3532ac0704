from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence

import pytest

from llamaswap.metering.capture import (
    OVERHEAD,
    Capture,
    HeadFields,
    fields_json,
    make_capture,
    wants_request_body,
    wants_response_body,
)

JSON = (b"Content-Type", b"application/json")


def captured(
    path: str = "/v1/chat/completions",
    *,
    status: int = 200,
    headers: Sequence[tuple[bytes, bytes]] = (JSON,),
    body: Sequence[bytes] = (b'{"ok":', b"true}"),
    broke_off: bool = False,
) -> Capture | None:
    encoding = dict(headers).get(b"Content-Encoding", b"").decode()
    return make_capture(
        req_path=path,
        asked=HeadFields(fields_json(((b"authorization", b"Bearer s3cret"), JSON), with_length=True)),
        req_body=[b'{"model":', b'"m1"}'] if wants_request_body(path) else (),
        status=status,
        answered=HeadFields(fields_json(headers, with_length=True)),
        content_encoding=encoding,
        resp_body=body if wants_response_body(path, status) else (),
        resp_bytes=sum(map(len, body)),
        broke_off=broke_off,
    )


def bodies(capture: Capture | None) -> tuple[bytes, bytes]:
    assert capture is not None
    return b"".join(capture.req_body), b"".join(capture.resp_body)


def test_a_capture_holds_both_sides_without_their_credentials() -> None:
    capture = captured(headers=(JSON, (b"set-cookie", b"a=s3cret")))

    assert bodies(capture) == (b'{"model":"m1"}', b'{"ok":true}')
    assert capture is not None
    assert capture.req_headers() == {"Authorization": "[REDACTED]", "Content-Type": "application/json"}
    assert capture.resp_headers() == {"Content-Type": "application/json", "Set-Cookie": "[REDACTED]"}
    assert capture.req_path == "/v1/chat/completions"


@pytest.mark.parametrize(
    ("path", "request_body", "response_body"),
    [
        ("/v1/chat/completions", True, True),
        ("/v1/audio/speech", True, False),
        ("/v1/images/generations", True, False),
        ("/sdapi/v1/txt2img", True, False),
        ("/v1/audio/voices", False, True),
        ("/v1/audio/transcriptions", False, True),
        ("/v1/images/edits", False, False),
        ("/sdapi/v1/img2img", False, False),
    ],
)
def test_the_route_says_which_bodies_are_worth_keeping(
    path: str, request_body: bool, response_body: bool
) -> None:
    asked, answered = bodies(captured(path))

    assert bool(asked) is request_body
    assert bool(answered) is response_body


@pytest.mark.parametrize("status", [404, 500, 302, 101])
def test_an_answer_that_is_no_success_is_kept_without_its_body(status: int) -> None:
    assert bodies(captured(status=status))[1] == b""


def test_an_empty_failure_is_kept_and_an_empty_success_is_not() -> None:
    assert captured(status=500, body=()) is not None
    assert captured(status=200, body=()) is None
    assert captured("/v1/audio/speech", status=200, body=()) is None


@pytest.mark.parametrize("encoding", [b"gzip", b"deflate"])
def test_an_encoded_answer_is_kept_decoded_and_says_nothing_of_its_encoding(encoding: bytes) -> None:
    packed = gzip.compress(b"plain text") if encoding == b"gzip" else zlib.compress(b"plain text")
    headers = (JSON, (b"Content-Encoding", encoding), (b"Content-Length", b"%d" % len(packed)))

    capture = captured(headers=headers, body=[packed[:5], packed[5:]])

    assert bodies(capture)[1] == b"plain text"
    assert capture is not None
    assert capture.resp_headers() == {"Content-Type": "application/json", "Content-Length": str(len(packed))}


def test_an_encoding_that_is_not_ours_is_kept_as_it_came() -> None:
    capture = captured(headers=((b"Content-Encoding", b"br"),), body=[b"\x01\x02"])

    assert bodies(capture)[1] == b"\x01\x02"
    assert capture is not None
    assert capture.resp_headers() == {"Content-Encoding": "br"}


def test_a_body_that_is_not_what_its_encoding_says_leaves_no_capture() -> None:
    headers = ((b"Content-Encoding", b"gzip"),)

    assert captured(headers=headers, body=[b"not zipped at all"]) is None
    assert captured(headers=headers, body=[gzip.compress(b"x" * 100)[:-6]]) is None


def test_of_a_stream_that_broke_off_what_had_come_is_kept() -> None:
    half = gzip.compress(b"some words that were said")[:-8]

    capture = captured(headers=((b"Content-Encoding", b"gzip"),), body=[half], broke_off=True)

    assert bodies(capture)[1] == b"some words that were said"


def test_heads_that_differ_in_their_length_share_the_rest() -> None:
    rest = fields_json((JSON, (b"content-length", b"7")), with_length=False)

    assert HeadFields(rest, b"7").show() == {"Content-Type": "application/json", "Content-Length": "7"}
    assert HeadFields(rest).show() == {"Content-Type": "application/json"}


def test_no_secret_is_held() -> None:
    capture = captured(headers=(JSON, (b"Set-Cookie", b"a=s3cret")))

    assert capture is not None
    assert b"s3cret" not in capture.asked.json + capture.answered.json


def test_a_capture_counts_with_its_heads_and_its_bodies() -> None:
    capture = captured()

    assert capture is not None
    heads = len(capture.asked.json) + len(capture.answered.json)
    assert capture.size_bytes == OVERHEAD + heads + len(b'{"model":"m1"}{"ok":true}')
