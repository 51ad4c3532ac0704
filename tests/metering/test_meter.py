from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.metering import meter as meter_module
from llamaswap.metering.meter import Meter, Metered
from llamaswap.metering.usage import Usage
from support.activity_answers import EVENT_STREAM, events, metered

TOKEN = {"choices": [{"delta": {"content": "a"}}]}
OPENAI = events(
    TOKEN, TOKEN, {"choices": [], "usage": {"prompt_tokens": 15, "completion_tokens": 33}}, "[DONE]"
)
LLAMACPP = events(
    {"content": "a"}, {"stop": True, "timings": {"prompt_n": 9, "predicted_n": 20, "cache_n": 3}}
)
ANTHROPIC = events(
    {"type": "message_start", "message": {"usage": {"input_tokens": 25, "output_tokens": 1}}},
    {"type": "message_delta", "usage": {"output_tokens": 15}},
)
CRLF = events(
    {"usage": {"prompt_tokens": 4, "completion_tokens": 5}}, "{bad", "[DONE]", end="\r\n\r\n", prefix="data:"
)
STREAMS = [OPENAI, LLAMACPP, ANTHROPIC, CRLF]
NOTHING = Metered(usage=Usage(), error="")


def tokens(answer: Metered) -> tuple[int, int]:
    assert answer.error == ""
    return answer.usage.input_tokens, answer.usage.output_tokens


def deflated(data: bytes, wbits: int = 15) -> bytes:
    compressor = zlib.compressobj(wbits=wbits)
    return compressor.compress(data) + compressor.flush()


@pytest.mark.parametrize(
    ("stream", "expected"), list(zip(STREAMS, [(15, 33), (9, 20), (25, 15), (4, 5)], strict=True))
)
def test_a_stream_of_each_api_is_metered(stream: bytes, expected: tuple[int, int]) -> None:
    assert tokens(metered(stream, content_type=EVENT_STREAM)) == expected


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(STREAMS), st.sampled_from(["", "gzip", "deflate"]), st.lists(st.integers(0, 400)))
def test_any_cut_of_a_stream_gives_the_same_usage(stream: bytes, encoding: str, cuts: list[int]) -> None:
    body = {"": stream, "gzip": gzip.compress(stream), "deflate": deflated(stream, -15)}[encoding]
    whole = metered(stream, content_type=EVENT_STREAM)
    assert metered(body, content_type=EVENT_STREAM, content_encoding=encoding, cuts=cuts) == whole


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([200, 500]),
    st.binary(max_size=80),
    st.lists(st.integers(0, 80)),
    st.sampled_from(["", "gzip"]),
)
def test_any_bytes_are_metered_alike_however_they_are_cut(
    status: int, body: bytes, cuts: list[int], encoding: str
) -> None:
    whole = metered(body, status=status, content_encoding=encoding)
    assert metered(body, status=status, content_encoding=encoding, cuts=cuts) == whole


def test_the_content_type_of_a_stream_may_carry_parameters_and_capitals() -> None:
    assert tokens(metered(OPENAI, content_type="Text/Event-Stream; charset=utf-8")) == (15, 33)


def test_a_stream_that_breaks_off_keeps_what_it_told() -> None:
    assert tokens(metered(ANTHROPIC[:-30], content_type=EVENT_STREAM)) == (25, 1)


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", ""])
def test_a_json_body_is_metered_whatever_its_type(content_type: str) -> None:
    body = {"usage": {"prompt_tokens": 2, "completion_tokens": 3}}
    assert tokens(metered(body, content_type=content_type, cuts=[3, 9])) == (2, 3)


def test_a_json_body_may_start_with_white_space() -> None:
    assert tokens(metered(b' \r\n\t{"usage":{"prompt_tokens":2}}', cuts=[1, 2, 3, 4])) == (2, 0)


def test_an_infill_array_is_metered() -> None:
    assert tokens(metered([{}, {"timings": {"prompt_n": 30, "predicted_n": 40}}], req_path="/infill")) == (
        30,
        40,
    )


@pytest.mark.parametrize("status", [200, 201, 202, 206, 299])
def test_each_2xx_is_a_success(status: int) -> None:
    assert tokens(metered({"usage": {"prompt_tokens": 3, "completion_tokens": 4}}, status=status)) == (3, 4)


@pytest.mark.parametrize("body", [b"", b"\x00\x01\x02", b"plain words", b'{"usage":'])
def test_an_answer_that_reports_nothing_is_all_zero(body: bytes) -> None:
    assert metered(body) == NOTHING


def test_a_body_that_cannot_be_json_is_not_kept() -> None:
    subject = Meter(req_path="/v1/audio/speech")
    subject.begin(status=200, content_type="audio/mpeg", content_encoding="")
    subject.feed(b"\xff\xfb" * 1000)
    subject.feed(b'{"usage":{"prompt_tokens":1}}')
    assert subject._reader._pieces == []  # type: ignore[attr-defined]  # memory is what this test is about
    assert subject.finish() == NOTHING


def test_a_body_beyond_the_bound_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'{"usage":{"prompt_tokens":2},"pad":"' + b"x" * 100 + b'"}'
    monkeypatch.setattr(meter_module, "LARGEST_BODY", len(body))
    assert tokens(metered(body, cuts=[50])) == (2, 0)
    monkeypatch.setattr(meter_module, "LARGEST_BODY", len(body) - 1)
    assert metered(body, cuts=[50]) == NOTHING


@pytest.mark.parametrize("wbits", [15, -15])
def test_both_kinds_of_deflate_are_read(wbits: int) -> None:
    body = deflated(b'{"usage":{"prompt_tokens":11,"completion_tokens":7}}', wbits)
    assert tokens(metered(body, content_encoding="deflate")) == (11, 7)


def test_an_encoding_that_we_do_not_decode_is_taken_as_it_is() -> None:
    assert tokens(metered({"usage": {"prompt_tokens": 12}}, content_encoding="br")) == (12, 0)
    assert metered(b"\x8b\x01\x80", content_encoding="br") == NOTHING


@pytest.mark.parametrize("content_type", ["application/json", EVENT_STREAM])
@pytest.mark.parametrize("cuts", [(), (1, 2, 20)])
def test_a_body_that_is_not_what_it_says_is_told_in_the_row(content_type: str, cuts: tuple[int, ...]) -> None:
    answer = metered(
        {"usage": {"prompt_tokens": 12}}, content_encoding="gzip", content_type=content_type, cuts=cuts
    )
    assert answer.usage == Usage()
    assert answer.error.startswith("response decompression failed: ")
    assert len(answer.error) > len("response decompression failed: ")


def test_an_encoded_stream_that_breaks_off_keeps_what_it_told() -> None:
    compressor = zlib.compressobj(wbits=31)
    started = compressor.compress(OPENAI) + compressor.flush(zlib.Z_SYNC_FLUSH)
    answer = metered(started, content_type=EVENT_STREAM, content_encoding="gzip")
    assert answer.usage.output_tokens == 33
    assert answer.error == "response decompression failed: unexpected end of data"


def test_a_bomb_is_not_metered_and_not_an_error() -> None:
    bomb = gzip.compress(b'{"usage":{"prompt_tokens":12},"pad":"' + b" " * (64 * 1024 * 1024) + b'"}', 1)
    assert metered(bomb, content_encoding="gzip") == NOTHING
    assert metered(bomb, content_encoding="gzip", status=500).error == "500 Internal Server Error"


def test_a_failure_is_told_in_its_own_words() -> None:
    answer = metered({"error": {"message": "too long"}}, status=400, content_type=EVENT_STREAM, cuts=[4, 9])
    assert answer == Metered(usage=Usage(), error="too long")


def test_an_encoded_failure_is_decoded() -> None:
    assert metered(gzip.compress(b'{"error":"flat"}'), status=500, content_encoding="gzip").error == "flat"


def test_a_failure_that_cannot_be_decoded_says_so() -> None:
    answer = metered({"error": "flat"}, status=500, content_encoding="gzip")
    assert answer.error.startswith("response decode failed: ")


def test_a_failures_body_is_read_only_so_far() -> None:
    body = b'{"error":"flat","pad":"' + b"x" * 300_000 + b'"}'
    assert metered(body, status=500).error == "500 Internal Server Error"


@pytest.mark.parametrize("body", [b"", b'{"usage":{"prompt_tokens":3}}'])
def test_a_failure_never_has_tokens(body: bytes) -> None:
    assert metered(body, status=404) == Metered(usage=Usage(), error="404 Not Found")


def test_an_upgrade_is_neither_read_nor_an_error() -> None:
    assert metered(b'{"usage":{"prompt_tokens":3}}', status=101) == NOTHING


def test_an_answer_that_never_had_a_head_is_all_zero() -> None:
    assert Meter(req_path="/v1/chat/completions").finish() == NOTHING


def test_finishing_twice_gives_the_same() -> None:
    subject = Meter(req_path="/v1/chat/completions")
    subject.begin(status=200, content_type=EVENT_STREAM, content_encoding="")
    subject.feed(OPENAI)
    assert subject.finish() == subject.finish()
