"""The player's own opinion: a difference that it did not see would let every transcript pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from conformance.player.answers import Answer, NotHttp, parse
from conformance.player.corpus import OURS, RECORDED, accepted, chosen, in_batches, read_corpus, strictly
from conformance.player.judging import judge, judge_upstream
from conformance.player.matching import difference
from conformance.player.talking import render

ANSWER = Answer(status=200, headers=(("A", "1"), ("a", "2"), ("B", "x")), body=b'{"n": [1, 2]}', took=1.0)
NOTE = {"model": "m", "line": "POST /v1", "headers": [["A", "1"]], "body": '{"a":1}', "size": 7}


def events(*types: str) -> bytes:
    return "".join(f'data: {{"type": "{kind}", "data": "[]"}}\n\n' for kind in types).encode()


MATCHES: list[tuple[Any, Any, Any]] = [
    ({"a": 1}, {"a": 1, "b": 2}, {"b": 2}),
    ([1, 2], [1, 2], [1]),
    (1, 1.0, True),
    (None, None, False),
    ({"$re": "b$"}, "ab", "ba"),
    ({"$type": "int|null"}, None, True),
    ({"$bag": [1, 2]}, [2, 1], [1, 1]),
    ({"$has": [2]}, [1, 2, 3], [1]),
    ({"$near": 1.0}, 1.0000001, 1.1),
    ({"$min": 5}, 5, 4),
    ({"$json": {"a": 1}}, '{"a": 1}', "{"),
    ({"$b64": "hi"}, "aGk=", "aGo="),
    ({"$b64json": [1]}, "WzFd", "WzJd"),
    ({"a": {"$absent": True}}, {}, {"a": None}),
]


@pytest.mark.parametrize(("want", "fine", "wrong"), MATCHES)
def test_each_rule_tells_right_from_wrong(want: Any, fine: Any, wrong: Any) -> None:
    assert difference(want, fine) == ""
    assert difference(want, wrong) != ""


@pytest.mark.parametrize(
    "want",
    [
        {"status": 404},
        {"status": [404, 500]},
        {"headers": {"a": "1"}},
        {"headers": {"B": None}},
        {"headers": {"C": "x"}},
        {"headers": {"B": {"re": "xx"}}},
        {"trailers": {"B": "x"}},
        {"end": "short"},
        {"min_s": 1.5},
        {"max_s": 0.5},
        {"body": {"json_subset": {"n": [1]}}},
        {"body": {"json": {}}},
        {"body": {"text": "x"}},
        {"body": {"b64": "eA=="}},
        {"body": {"size": 1}},
        {"body": {"re": "3"}},
        {"body": [{"re": "1"}, {"not_re": "2"}]},
        {"raw_re": "x"},
        {"upstream_saw": [{}]},
    ],
)
def test_an_answer_that_is_not_as_expected_is_wrong(want: dict[str, Any]) -> None:
    assert judge(want, ANSWER, []) != ""


def test_an_answer_as_expected_is_right() -> None:
    body = [{"json": {"n": [1, 2]}}, {"size": 13}, {"re": "2"}, {"not_re": "3"}]
    want = {"status": [200], "headers": {"a": "1, 2", "b": {"re": "."}, "c": None}, "body": body, "max_s": 2}

    assert judge(want, ANSWER, None) == ""


def test_events_come_first_or_in_order() -> None:
    answer = replace(ANSWER, body=events("a", "b", "c"))

    assert judge({"body": {"first_events": [{"type": "a"}, {"type": "b"}]}}, answer, None) == ""
    assert judge({"body": {"first_events": [{"type": "b"}]}}, answer, None) != ""
    assert judge({"body": {"events_in_order": [{"type": "a"}, {"type": "c"}]}}, answer, None) == ""
    assert judge({"body": {"events_in_order": [{"type": "c"}, {"type": "a"}]}}, answer, None) != ""


@pytest.mark.parametrize(
    "want",
    [{"model": "n"}, {"line": "GET /v1"}, {"headers": {"a": None}}, {"body": "{}"}, {"body_json": {"b": 1}}],
)
def test_a_request_that_is_not_as_expected_is_wrong(want: dict[str, Any]) -> None:
    assert judge_upstream([{"model": "m", "body_json": {"a": 1}, "size": 7}], [NOTE]) == ""
    assert judge_upstream([want], [NOTE]) != ""


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n"


@pytest.mark.parametrize(
    ("received", "closed", "end", "body"),
    [
        (CHUNKED + b"\r\n", False, "clean", b"hi"),
        (CHUNKED + b"T: 1\r\n\r\n", False, "clean", b"hi"),
        (CHUNKED, False, "short", b"hi"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi", True, "short", b"hi"),
        (b"HTTP/1.1 200 OK\r\n\r\nhi", True, "clean", b"hi"),
        (b"HTTP/1.1 200 OK\r\n\r\nhi", False, "short", b"hi"),
        (b"HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 204 None\r\n\r\n", False, "clean", b""),
    ],
)
def test_framing_says_how_an_answer_ended(received: bytes, closed: bool, end: str, body: bytes) -> None:
    answer = parse(received, "GET", closed=closed)

    assert answer is not None
    assert (answer.end, answer.body) == (end, body)


def test_half_a_head_is_no_answer_yet_and_noise_never_is() -> None:
    assert parse(b"HTTP/1.1 200 OK\r\n", "GET", closed=False) is None
    with pytest.raises(NotHttp):
        parse(b"hello\r\n\r\n", "GET", closed=False)


def test_a_request_gets_the_fields_that_it_lacks() -> None:
    plain = render({"method": "POST", "path": "/x", "body": "hi"}, "h:1")
    given = render({"method": "GET", "path": "/x", "headers": {"HOST": "o", "connection": "k"}}, "h:1")

    assert plain.data == b"POST /x HTTP/1.1\r\nHost: h:1\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"
    assert given.data == b"GET /x HTTP/1.1\r\nHOST: o\r\nconnection: k\r\n\r\n"


def test_cases_that_share_a_server_have_its_configuration_and_none_is_lost() -> None:
    cases = read_corpus(RECORDED)
    batches = in_batches(cases)

    assert sorted(case["id"] for batch in batches for case in batch) == sorted(case["id"] for case in cases)
    assert all(len({case["config"] for case in batch}) == 1 for batch in batches)
    assert all(case.get("share") for batch in batches for case in batch if len(batch) > 1)


def test_ids_are_unique_and_every_step_has_its_expectation() -> None:
    cases = [*read_corpus(RECORDED), *read_corpus(OURS)]

    assert len({case["id"] for case in cases}) == len(cases) == 333 + 27
    assert all(len(case["steps"]) == len(case["expect"]) for case in cases)


def test_what_else_is_accepted_is_not_under_strict_eyes() -> None:
    (cut,) = chosen(read_corpus(RECORDED), ["C-448"])

    assert [answer["status"] for answer in accepted(cut, 1)] == [502, 502, 200]
    (strict,) = strictly([cut])
    assert [answer["status"] for answer in accepted(strict, 1)] == [502]
