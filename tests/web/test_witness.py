"""Who sees an answer in passing."""

from __future__ import annotations

import gzip
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.task import Clock

from llamaswap.http1.heads import RequestHead, ResponseHead
from llamaswap.metering.capture import Capture
from llamaswap.metering.meter import Metered
from llamaswap.metering.usage import Usage
from llamaswap.telemetry.inflight import InFlight
from llamaswap.web.witness import HELD, Witness
from support.activity_answers import EVENT_STREAM, cut, events, metered

CHAT = "/v1/chat/completions"
ASKED = RequestHead(b"POST", b"/v1/chat/completions", (1, 1), ((b"Authorization", b"Bearer s3cret"),))
HEAD = ResponseHead(200, b"OK", (1, 1), ((b"Content-TYPE", b"application/json"),))


def head(status: int = 200, *fields: tuple[bytes, bytes]) -> ResponseHead:
    return ResponseHead(status, b"", (1, 1), fields)


def witness(path: str = CHAT, *, most: int = 10 * HELD) -> Witness:
    """One that sees everything."""
    return Witness(path, metered=True, asked=ASKED, most=most)


def seen(answer: ResponseHead, *body: bytes, path: str = CHAT, most: int = 10 * HELD) -> Witness:
    """One that has seen an answer."""
    subject = witness(path, most=most)
    subject.sent((b'{"model":"m1"}',))
    subject.head(answer)
    for data in body:
        subject.data(data)
    return subject


def bodies(capture: Capture | None) -> tuple[bytes, bytes]:
    assert capture is not None
    return b"".join(capture.req_body), b"".join(capture.resp_body)


def test_a_body_is_metered_and_captured() -> None:
    subject = seen(HEAD, b'{"usage":{"prompt_tokens":', b"5}}")

    assert subject.metered().usage.input_tokens == 5
    capture = subject.capture(broke_off=False)
    assert bodies(capture) == (b'{"model":"m1"}', b'{"usage":{"prompt_tokens":5}}')
    assert capture is not None
    assert capture.req_headers() == {"Authorization": "[REDACTED]"}
    assert capture.resp_headers() == {"Content-Type": "application/json"}


def test_nobody_needs_to_look() -> None:
    subject = Witness(CHAT)
    subject.head(HEAD)
    subject.data(b"x")
    subject.refused(404, ())

    assert subject.capture(broke_off=False) is None
    assert subject.passed_bytes == 1


TOKEN = {"choices": [{"delta": {"content": "abcdefgh" * 4}}]}
STREAMS = [
    events(
        *[TOKEN] * 300, {"choices": [], "usage": {"prompt_tokens": 15, "completion_tokens": 33}}, "[DONE]"
    ),
    events({"content": "a"}, *[TOKEN] * 200, {"timings": {"prompt_n": 9, "predicted_n": 20, "cache_n": 3}}),
    events({"message": {"usage": {"input_tokens": 25}}}, *[TOKEN] * 400, {"usage": {"output_tokens": 15}}),
    events(*[TOKEN] * 20, {"usage": {"prompt_tokens": 4}}, "{bad", end="\r\n\r\n", prefix="data:"),
    events(*[{"timings": {"predicted_n": number}, "pad": "x" * 100} for number in range(300)]),
]


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(STREAMS), st.lists(st.integers(0, 30_000), max_size=40), st.booleans())
def test_a_stream_comes_to_what_a_meter_says_that_looks_at_each_piece(
    stream: bytes, cuts: list[int], zipped: bool
) -> None:
    encoding = "gzip" if zipped else ""
    body = gzip.compress(stream) if zipped else stream
    pieces = [piece for piece in cut(body, cuts) if piece]
    fields = ((b"Content-Type", EVENT_STREAM.encode()), (b"Content-Encoding", encoding.encode()))

    subject = seen(head(200, *fields), *pieces)

    assert subject.metered() == metered(body, content_type=EVENT_STREAM, content_encoding=encoding, cuts=cuts)
    assert bodies(subject.capture(broke_off=False))[1] == stream


@settings(deadline=None, max_examples=40)
@given(st.lists(st.binary(min_size=1, max_size=2 * HELD), max_size=8), st.sampled_from([200, 400]))
def test_any_bytes_come_to_what_they_are_however_they_are_cut(pieces: Sequence[bytes], status: int) -> None:
    whole = b"".join(pieces)

    subject = seen(head(status), *pieces, most=1 << 20)

    assert subject.metered() == metered(whole, status=status, content_type="")
    assert subject.passed_bytes == len(whole)


def test_a_stream_holds_only_so_much_that_nobody_has_looked_at() -> None:
    subject = Witness(CHAT, metered=True)
    subject.head(head(200, (b"Content-Type", b"text/event-stream")))
    for _ in range(10_000):
        subject.data(b'data: {"content":"a"}\n\n')
        assert sum(map(len, subject._pieces)) <= HELD + 100
    assert subject._kept == []


def test_an_answer_of_ours_is_captured_and_not_metered() -> None:
    subject = witness()
    subject.sent((b"{}",))
    subject.refused(503, ((b"Content-Type", b"application/json"), (b"Set-Cookie", b"s3cret")))

    capture = subject.capture(broke_off=True)
    assert bodies(capture) == (b"{}", b"")
    assert capture is not None
    assert capture.resp_headers() == {"Content-Type": "application/json", "Set-Cookie": "[REDACTED]"}
    assert subject.metered() == Metered(usage=Usage(), error="")


def test_an_exchange_without_any_answer_leaves_no_capture() -> None:
    subject = witness()
    subject.sent((b"{}",))

    assert subject.capture(broke_off=False) is None


@pytest.mark.parametrize("lengths", [(b"3",), (b"3", b"3"), (b"three",), ()])
def test_a_capture_shows_the_length_that_its_own_head_had(lengths: tuple[bytes, ...]) -> None:
    def fields(*values: bytes) -> tuple[tuple[bytes, bytes], ...]:
        return ((b"X-A", b"1"), *((b"content-LENGTH", value) for value in values))

    first = head(200, *fields(*lengths))
    one = seen(first, b"abc").capture(broke_off=False)
    assert one is not None
    assert one.resp_headers() == {"X-A": "1"} | ({"Content-Length": lengths[0].decode()} if lengths else {})

    if first.length_text is not None:
        other = seen(first.with_length(b"4"), b"abcd").capture(broke_off=False)
        assert other is not None
        assert other.resp_headers() == {"X-A": "1", "Content-Length": "4"}
        assert other.answered.json is one.answered.json


def test_a_stream_is_captured_with_what_its_client_was_told_of_buffering() -> None:
    subject = seen(
        head(200, (b"Content-Type", b"text/event-stream"), (b"Connection", b"close")), b"data: {}\n\n"
    )

    capture = subject.capture(broke_off=False)

    assert capture is not None
    assert capture.resp_headers() == {"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}


@pytest.mark.parametrize(("path", "kept"), [("/v1/audio/speech", False), ("/v1/audio/voices", True)])
def test_only_bodies_that_are_worth_it_are_kept(path: str, kept: bool) -> None:
    asked, answered = bodies(seen(HEAD, b"abc", path=path).capture(broke_off=False))

    assert bool(answered) is kept
    assert bool(asked) is not kept


def test_a_response_that_is_too_large_is_let_go_while_it_still_comes() -> None:
    subject = seen(HEAD, *[b"x" * HELD] * 2, b"y", most=3 * HELD)
    assert subject._kept != []

    subject.data(b"x" * 2 * HELD)

    assert (subject._kept, subject._sent) == ([], ())
    subject.data(b"more" * HELD)
    assert subject._kept == []
    assert subject.capture(broke_off=False) is None


def test_a_request_that_is_too_large_is_not_even_referred_to() -> None:
    subject = witness(most=10)
    subject.sent((b"12345678901",))

    assert subject._sent == ()
    subject.head(HEAD)
    assert subject.capture(broke_off=False) is None


def test_a_large_body_that_is_not_wanted_does_not_count() -> None:
    subject = seen(HEAD, b"x" * 1000 * HELD, path="/v1/audio/speech", most=20)

    assert subject.capture(broke_off=False) is not None


def test_the_list_of_requests_in_flight_sees_how_far_it_is() -> None:
    clock = Clock()
    flights = InFlight(clock, clock.seconds)
    flight = flights.enter(
        model="m", req_path=CHAT, head=ASKED, client_host="", arrived=0.0, cancel=lambda: None
    )
    subject = Witness(CHAT, flight=flight)
    (before,) = flights.snapshot()["requests"]
    subject.head(HEAD)
    subject.data(b"12345")
    (after,) = flights.snapshot()["requests"]

    assert (before["resp_headers"], before["resp_bytes"]) == ({}, 0)
    assert (after["resp_headers"], after["resp_bytes"]) == ({"Content-Type": "application/json"}, 5)
