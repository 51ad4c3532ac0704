from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence

import pytest

from llamaswap.metering.capture import Capture, Recording

JSON = (b"Content-Type", b"application/json")


def recording(path: str = "/v1/chat/completions", *, most: int = 1000) -> Recording:
    return Recording(req_path=path, req_headers=((b"authorization", b"Bearer s3cret"), JSON), most=most)


def captured(
    path: str = "/v1/chat/completions",
    *,
    status: int = 200,
    headers: Sequence[tuple[bytes, bytes]] = (JSON,),
    body: Sequence[bytes] = (b'{"ok":', b"true}"),
    broke_off: bool = False,
) -> Capture | None:
    taken = recording(path)
    taken.sent([b'{"model":', b'"m1"}'])
    taken.begin(status=status, headers=headers)
    for data in body:
        taken.feed(data)
    return taken.finish(broke_off=broke_off)


def bodies(capture: Capture | None) -> tuple[bytes, bytes]:
    assert capture is not None
    return b"".join(capture.req_body), b"".join(capture.resp_body)


def test_a_capture_holds_both_sides_without_their_credentials() -> None:
    capture = captured(headers=(JSON, (b"set-cookie", b"a=s3cret")))

    assert bodies(capture) == (b'{"model":"m1"}', b'{"ok":true}')
    assert capture is not None
    assert capture.req_headers == {"Authorization": "[REDACTED]", "Content-Type": "application/json"}
    assert capture.resp_headers == {"Content-Type": "application/json", "Set-Cookie": "[REDACTED]"}
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


def test_an_exchange_without_any_answer_leaves_no_capture() -> None:
    taken = recording()
    taken.sent([b"{}"])

    assert taken.finish() is None


@pytest.mark.parametrize("encoding", [b"gzip", b"deflate"])
def test_an_encoded_answer_is_kept_decoded_and_says_nothing_of_its_encoding(encoding: bytes) -> None:
    packed = gzip.compress(b"plain text") if encoding == b"gzip" else zlib.compress(b"plain text")
    headers = (JSON, (b"Content-Encoding", encoding), (b"Content-Length", b"%d" % len(packed)))

    capture = captured(headers=headers, body=[packed[:5], packed[5:]])

    assert bodies(capture)[1] == b"plain text"
    assert capture is not None
    assert capture.resp_headers == {"Content-Type": "application/json", "Content-Length": str(len(packed))}


def test_an_encoding_that_is_not_ours_is_kept_as_it_came() -> None:
    capture = captured(headers=((b"Content-Encoding", b"br"),), body=[b"\x01\x02"])

    assert bodies(capture)[1] == b"\x01\x02"
    assert capture is not None
    assert capture.resp_headers == {"Content-Encoding": "br"}


def test_a_body_that_is_not_what_its_encoding_says_leaves_no_capture() -> None:
    headers = ((b"Content-Encoding", b"gzip"),)

    assert captured(headers=headers, body=[b"not zipped at all"]) is None
    assert captured(headers=headers, body=[gzip.compress(b"x" * 100)[:-6]]) is None


def test_of_a_stream_that_broke_off_what_had_come_is_kept() -> None:
    half = gzip.compress(b"some words that were said")[:-8]

    capture = captured(headers=((b"Content-Encoding", b"gzip"),), body=[half], broke_off=True)

    assert bodies(capture)[1] == b"some words that were said"


def test_a_response_that_is_too_large_is_let_go_while_it_still_comes() -> None:
    taken = recording(most=10)
    taken.sent([b"12345"])
    taken.begin(status=200, headers=())

    taken.feed(b"12345")
    assert taken._taken == [b"12345"]
    taken.feed(b"6")

    assert taken.too_large
    assert taken._taken == []
    taken.feed(b"more")
    assert taken._taken == []
    assert taken.finish() is None


def test_a_request_that_is_too_large_is_not_even_referred_to() -> None:
    taken = recording(most=10)
    taken.sent([b"12345678901"])

    assert taken.too_large
    assert taken._req_body == ()


def test_a_large_body_that_is_not_wanted_does_not_count() -> None:
    taken = recording("/v1/audio/speech", most=10)
    taken.begin(status=200, headers=())
    taken.feed(b"x" * 1000)

    assert not taken.too_large
    assert taken.finish() is not None
