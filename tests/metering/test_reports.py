from __future__ import annotations

import json

import pytest

from llamaswap.metering.reports import StreamReport, usage_of_body
from llamaswap.metering.usage import REPORTED, Usage

CHAT = "/v1/chat/completions"


def of_body(body: object, req_path: str = CHAT) -> Usage:
    return usage_of_body(json.dumps(body).encode(), req_path)


def of_events(*payloads: object) -> Usage:
    report = StreamReport()
    for payload in payloads:
        report.event(payload if isinstance(payload, bytes) else json.dumps(payload).encode())
    return report.usage()


@pytest.mark.parametrize(
    "body", [b"", b"plain words", b'{"usage":{"prompt_tokens":1', b"[]", b"3", b"null", b"\x00"]
)
def test_what_is_not_a_json_object_reports_nothing(body: bytes) -> None:
    assert usage_of_body(body, CHAT) == Usage()


def test_an_answer_without_a_report_is_all_zero() -> None:
    assert of_body({"data": []}) == Usage()
    assert of_body({"input_tokens": 14}) == Usage()


def test_a_null_usage_is_a_report_of_nothing() -> None:
    assert of_body({"usage": None}) == REPORTED


def test_only_top_level_usage_counts_in_a_whole_answer() -> None:
    assert of_body({"response": {"usage": {"input_tokens": 5, "output_tokens": 6}}}) == Usage()


def test_timings_win_over_usage_in_one_body() -> None:
    usage = of_body({"usage": {"prompt_tokens": 1}, "timings": {"prompt_n": 9}})
    assert usage.input_tokens == 9


def test_timings_that_are_no_object_change_nothing() -> None:
    assert of_body({"usage": {"prompt_tokens": 1}, "timings": None}).input_tokens == 1


def test_infill_reports_in_its_last_element() -> None:
    body = [{"timings": {"prompt_n": 1}}, {"timings": {"prompt_n": 30, "predicted_n": 40}}]
    usage = of_body(body, "/infill")
    assert (usage.input_tokens, usage.output_tokens, usage.cache_tokens) == (30, 40, -1)


def test_infill_may_answer_with_an_object() -> None:
    assert of_body({"timings": {"prompt_n": 30}}, "/infill").input_tokens == 30


@pytest.mark.parametrize("body", [b"[]", b"[1]", b'[{"timings":{"prompt_n":1}},{}]', b'[{"timings":'])
def test_infill_without_final_timings_reports_nothing(body: bytes) -> None:
    assert usage_of_body(body, "/infill") == Usage()


def test_an_array_elsewhere_reports_nothing() -> None:
    assert of_body([{"timings": {"prompt_n": 1}}], "/completion") == Usage()


def test_json_that_is_nested_absurdly_deep_reports_nothing() -> None:
    deep = b"[" * 100_000
    assert usage_of_body(b'{"usage":' + deep, CHAT) == Usage()
    assert usage_of_body(deep, "/infill") == Usage()


def test_numbers_that_no_float_holds_do_not_hide_the_report() -> None:
    assert usage_of_body(b'{"x":1e999,"usage":{"prompt_tokens":3}}', CHAT).input_tokens == 3


def test_events_that_report_nothing_leave_zeros() -> None:
    assert of_events({"choices": []}, b"{bad", b"[DONE]", b"[1]", b"") == Usage()


def test_an_openai_stream_reports_in_its_last_event() -> None:
    usage = of_events(
        {"choices": [{}], "usage": None}, {"usage": {"prompt_tokens": 15, "completion_tokens": 33}}
    )
    assert (usage.input_tokens, usage.output_tokens, usage.cache_tokens) == (15, 33, -1)


def test_a_responses_stream_reports_within_its_response() -> None:
    done = {
        "response": {
            "usage": {"input_tokens": 21, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 0}}
        }
    }
    usage = of_events({"type": "response.created", "response": {"usage": None}}, done)
    assert (usage.input_tokens, usage.output_tokens, usage.cache_tokens) == (21, 9, 0)


def test_a_messages_stream_reports_its_input_first_and_its_output_last() -> None:
    start = {"message": {"usage": {"input_tokens": 25, "output_tokens": 1, "cache_read_input_tokens": 7}}}
    usage = of_events(start, {"usage": {"output_tokens": 15}})
    assert (usage.input_tokens, usage.output_tokens, usage.cache_tokens) == (25, 15, 7)


def test_the_latest_positive_counts_are_kept() -> None:
    usage = of_events(
        {
            "usage": {
                "prompt_tokens": 4,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 3},
            }
        },
        {
            "usage": {
                "prompt_tokens": 0,
                "completion_tokens": 6,
                "prompt_tokens_details": {"cached_tokens": 0},
            }
        },
    )
    assert (usage.input_tokens, usage.output_tokens, usage.cache_tokens) == (4, 6, 0)


def test_the_last_timings_of_a_stream_count() -> None:
    usage = of_events({"timings": {"predicted_n": 1}}, {"timings": {"predicted_n": 2}}, {"timings": None})
    assert usage.output_tokens == 2


def test_the_last_metrics_of_a_stream_count() -> None:
    usage = of_events(
        {"metrics": {"time_to_first_token_ms": 1}},
        {"usage": {"prompt_tokens": 10}, "metrics": {"time_to_first_token_ms": 100, "mean_itl_ms": 20}},
    )
    assert (usage.prompt_per_second, usage.tokens_per_second) == (100, 50)


@pytest.mark.parametrize(
    "odd", [{"message": "hi"}, {"response": [1]}, {"usage": "none"}, {"message": {"usage": 3}}]
)
def test_an_odd_event_does_not_hide_the_next_ones(odd: object) -> None:
    assert of_events(odd, {"usage": {"prompt_tokens": 4}}).input_tokens == 4
