from __future__ import annotations

import json

import pytest

from llamaswap.metering.failures import failure_text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"error": {"message": "no such thing"}, "message": "second"}, "no such thing"),
        ({"error": "flat"}, "flat"),
        ({"message": "said", "detail": "more"}, "said"),
        ({"detail": "det"}, "det"),
        ({"error": {"message": "  "}, "detail": "later"}, "later"),
        ({"error": {"message": 42}, "message": "second"}, "second"),
        ({"error": "\n\t", "message": "third"}, "third"),
        ({"error": {"code": 42}}, "400 Bad Request"),
        ({"detail": [{"msg": "list"}]}, "400 Bad Request"),
        ({}, "400 Bad Request"),
        (["error"], "400 Bad Request"),
    ],
)
def test_the_first_words_of_a_json_body_are_the_text(body: object, text: str) -> None:
    assert failure_text(400, json.dumps(body).encode()) == text


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (302, "302 Found"),
        (404, "404 Not Found"),
        (413, "413 Request Entity Too Large"),
        (414, "414 Request URI Too Long"),
        (418, "418 I'm a teapot"),
        (502, "502 Bad Gateway"),
        (499, "HTTP 499"),
        (599, "HTTP 599"),
    ],
)
def test_a_body_that_is_not_json_leaves_the_status_line(status: int, text: str) -> None:
    assert failure_text(status, b"<html>bad</html>") == text
    assert failure_text(status, b"") == text


def test_a_long_message_is_cut() -> None:
    assert failure_text(500, json.dumps({"error": "y" * 500}).encode()) == "y" * 500
    assert failure_text(500, json.dumps({"error": "y" * 600}).encode()) == "y" * 500 + "..."


def test_a_cut_never_splits_a_character() -> None:
    assert failure_text(500, json.dumps({"error": "é" * 249 + "€€€"}).encode()) == "é" * 249 + "..."


def test_json_that_is_nested_absurdly_deep_leaves_the_status_line() -> None:
    assert failure_text(500, b'{"error":' + b"[" * 100_000) == "500 Internal Server Error"
