from __future__ import annotations

import math

import pytest

from llamaswap.metering.usage import LARGEST, REPORTED, Counts, Usage, assess, counts_of

TIMINGS = {
    "prompt_n": 9,
    "prompt_ms": 200.0,
    "prompt_per_second": 45.5,
    "predicted_n": 20,
    "predicted_ms": 1250.0,
    "predicted_per_second": 16.25,
    "cache_n": 3,
}


def test_openai_counts_are_read() -> None:
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4}}
    assert counts_of(usage) == Counts(11, 7, 4)


def test_responses_counts_are_read() -> None:
    usage = {"input_tokens": 5, "output_tokens": 6, "input_tokens_details": {"cached_tokens": 1}}
    assert counts_of(usage) == Counts(5, 6, 1)


def test_anthropic_counts_are_read() -> None:
    assert counts_of({"input_tokens": 5, "output_tokens": 6, "cache_read_input_tokens": 2}) == Counts(5, 6, 2)


def test_openai_names_win_where_both_are_given() -> None:
    usage = {"prompt_tokens": 1, "input_tokens": 2, "completion_tokens": 3, "output_tokens": 4}
    assert counts_of(usage) == Counts(1, 3, -1)


def test_anthropics_cache_count_wins_over_the_details() -> None:
    usage = {
        "cache_read_input_tokens": 1,
        "input_tokens_details": {"cached_tokens": 2},
        "prompt_tokens_details": {"cached_tokens": 3},
    }
    assert counts_of(usage).cache == 1
    del usage["cache_read_input_tokens"]
    assert counts_of(usage).cache == 2


@pytest.mark.parametrize("details", [None, [], 3, {"audio_tokens": 1}])
def test_details_without_a_cache_count_leave_it_unreported(details: object) -> None:
    assert counts_of({"prompt_tokens": 1, "prompt_tokens_details": details}).cache == -1


def test_counts_alone_leave_the_rest_unreported() -> None:
    assert assess(Counts(11, 7, -1), None, None) == Usage(
        cache_tokens=-1,
        draft_tokens=-1,
        draft_acc_tokens=-1,
        input_tokens=11,
        output_tokens=7,
        prompt_per_second=-1,
        tokens_per_second=-1,
    )


def test_timings_are_taken_as_they_are() -> None:
    usage = assess(Counts(1, 1, -1), TIMINGS, None)
    assert (usage.input_tokens, usage.output_tokens, usage.cache_tokens) == (9, 20, 3)
    assert (usage.prompt_per_second, usage.tokens_per_second) == (45.5, 16.25)
    assert usage.upstream_ms == 1450
    assert (usage.draft_tokens, usage.draft_acc_tokens) == (-1, -1)


def test_timings_win_even_where_they_say_nothing() -> None:
    usage = assess(Counts(3, 4, 2), {}, None)
    assert (usage.input_tokens, usage.output_tokens) == (0, 0)
    assert (usage.prompt_per_second, usage.tokens_per_second) == (0, 0)
    assert usage.cache_tokens == 2


def test_drafts_count_only_as_a_pair() -> None:
    both = assess(None, TIMINGS | {"draft_n": 10, "draft_n_accepted": 7}, None)
    assert (both.draft_tokens, both.draft_acc_tokens) == (10, 7)
    half = assess(None, TIMINGS | {"draft_n": 10}, None)
    assert (half.draft_tokens, half.draft_acc_tokens) == (-1, -1)


def test_vllm_latencies_become_speeds() -> None:
    usage = assess(Counts(14, 5, -1), None, {"time_to_first_token_ms": 70, "mean_itl_ms": 10})
    assert usage.prompt_per_second == pytest.approx(200)
    assert usage.tokens_per_second == 100
    assert usage.cache_tokens == -1


def test_a_cached_prompt_is_not_counted_as_processed() -> None:
    usage = assess(Counts(14, 5, 4), None, {"time_to_first_token_ms": 50})
    assert usage.prompt_per_second == 200
    assert usage.tokens_per_second == -1


def test_vllms_own_tokens_per_second_is_not_used() -> None:
    assert assess(Counts(1, 1, -1), None, {"tokens_per_second": 77}).tokens_per_second == -1


@pytest.mark.parametrize("latency", [0, -5, None, "70", True])
def test_a_latency_that_is_none_gives_no_speed(latency: object) -> None:
    usage = assess(Counts(1, 1, -1), None, {"time_to_first_token_ms": latency, "mean_itl_ms": latency})
    assert (usage.prompt_per_second, usage.tokens_per_second) == (-1, -1)


def test_vllm_drafts_count_only_as_a_pair() -> None:
    both = {"speculative_decoding": {"num_draft_tokens": 8, "num_accepted_draft_tokens": 6}}
    usage = assess(None, None, both)
    assert (usage.draft_tokens, usage.draft_acc_tokens) == (8, 6)
    assert assess(None, None, {"speculative_decoding": {"num_draft_tokens": 8}}) == REPORTED


def test_an_empty_speculative_object_leaves_the_drafts_of_timings() -> None:
    usage = assess(None, TIMINGS | {"draft_n": 10, "draft_n_accepted": 7}, {"speculative_decoding": {}})
    assert (usage.draft_tokens, usage.draft_acc_tokens) == (10, 7)


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        ("12", 0),
        (None, 0),
        (True, 0),
        ([], 0),
        (2.9, 2),
        (-3, -1),
        (10**40, LARGEST),
        (math.inf, 0),
        (math.nan, 0),
    ],
)
def test_a_count_is_a_number_that_a_database_can_hold(value: object, taken: int) -> None:
    assert counts_of({"prompt_tokens": value}).input == taken
