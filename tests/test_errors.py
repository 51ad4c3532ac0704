"""What a refused client gets: status, words and headers."""

from __future__ import annotations

import json

import pytest

from llamaswap.errors import (
    BadRequest,
    BodiesFull,
    BodyTooLarge,
    DeadlineHopeless,
    DeadlinePassed,
    LoadRefused,
    ModelFailing,
    ModelNotFound,
    ModelProtected,
    ModelUnloaded,
    NoModel,
    NotLoaded,
    NotReady,
    QueueFull,
    Refusal,
    ShuttingDown,
    TooManyReaders,
    TooManyRequests,
    UnknownModel,
    UpstreamUnreachable,
)
from llamaswap.rendering import envelope, render

EVERY_REFUSAL: list[tuple[Refusal, int, str]] = [
    (BadRequest("malformed form"), 400, "malformed form"),
    (NoModel(), 404, "no model id could be identified"),
    (UnknownModel(), 404, "no router for requested model"),
    (ModelNotFound(), 404, "model not found"),
    (NotLoaded("A is not loaded"), 409, "A is not loaded"),
    (TooManyRequests(), 429, "Too many requests"),
    (
        LoadRefused("health check timed out after 15s"),
        500,
        "unspecific error: health check timed out after 15s",
    ),
    (ModelFailing("A", "exited", (), 5), 503, "model A keeps failing to load: exited"),
    (ModelUnloaded(), 500, "unspecific error: group: model unloaded"),
    (
        ModelProtected("B", ["A"]),
        409,
        (
            "model A is loaded and protected, and B cannot run beside it; unload it (POST "
            "/api/models/unload/A) or send X-LlamaSwap-Evict: protected"
        ),
    ),
    (QueueFull(), 503, "the queue is full"),
    (TooManyReaders(), 503, "too many readers of events and logs"),
    (BodyTooLarge(), 413, "request body too large"),
    (BodiesFull(), 503, "no room for another request body now"),
    (ShuttingDown(), 503, "llamaswap is shutting down"),
    (NotReady("A"), 503, "[A] process is not ready"),
    (UpstreamUnreachable("connection refused"), 502, "connection refused"),
    (Refusal("something else"), 500, "something else"),
]


@pytest.mark.parametrize(
    ("allowed", "expected", "words", "retry"),
    [
        (0.0, 0.02, "the wait is expected to take 1 s, and may take 0 s", "1"),
        (5.0, 5.3, "the wait is expected to take 6 s, and may take 5 s", "1"),
        (0.1, 960.0, "the wait is expected to take 960 s, and may take 0.1 s", "960"),
    ],
)
def test_a_wait_that_would_be_too_long_is_told_to_be_longer_than_it_may(
    allowed: float, expected: float, words: str, retry: str
) -> None:
    refusal = DeadlineHopeless(allowed, expected)

    assert refusal.message == words
    assert dict(refusal.headers()) == {b"Retry-After": retry.encode()}


def test_the_length_of_a_wait_that_was_too_long_is_told_in_milliseconds_at_the_finest() -> None:
    assert DeadlinePassed(1.00011).message == "still queued after 1 s, which is as long as it may wait"


@pytest.mark.parametrize(
    ("refusal", "status", "message"), EVERY_REFUSAL, ids=[type(row[0]).__name__ for row in EVERY_REFUSAL]
)
def test_every_refusal_has_its_status_and_its_words(refusal: Refusal, status: int, message: str) -> None:
    assert (refusal.status, refusal.message, str(refusal)) == (status, message, message)
    assert render(refusal).status == status


def test_a_refusal_that_passes_says_when_to_come_back() -> None:
    assert ShuttingDown().headers() == ((b"Retry-After", b"5"),)
    assert ModelFailing("A", "exited", (), 40).headers() == ((b"Retry-After", b"40"),)
    assert render(ModelFailing("A", "exited", (), 40), "text/plain").headers[-1] == (b"Retry-After", b"40")


def test_a_refusal_that_lasts_does_not() -> None:
    assert UnknownModel().headers() == ()
    assert LoadRefused("exited").headers() == ()


def test_a_failed_load_shows_the_last_output_oldest_first() -> None:
    told = LoadRefused("exited with 1", ["loading", "out of memory"]).message
    assert told == "unspecific error: exited with 1; its last output: loading | out of memory"
    assert LoadRefused("exited with 1", []).message == "unspecific error: exited with 1"


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        (QueueFull(), "queue_full"),
        (TooManyReaders(), "too_many_readers"),
        (BodiesFull(), "no_room_for_body"),
    ],
)
def test_what_is_full_now_may_be_asked_again_in_a_moment_and_says_what_it_was(
    refusal: Refusal, code: str
) -> None:
    assert refusal.headers() == ((b"Retry-After", b"5"),)
    assert json.loads(envelope(refusal))["error"]["code"] == code


def test_a_body_that_is_too_large_is_not_told_to_come_again() -> None:
    assert BodyTooLarge().headers() == ()
    assert json.loads(envelope(BodyTooLarge()))["error"]["code"] == "request_too_large"
