"""The tokens and speeds that the upstreams' APIs report.

Pure: knows llama.cpp's ``timings``, vLLM's ``metrics`` and the ``usage`` objects of OpenAI and Anthropic.
How their JSON was found in an answer is `reports`' and `meter`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

NOT_REPORTED: Final = -1
# Above any real count and low enough that a million rows of it still add up in 64 bits.
LARGEST: Final = 10**12


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """One answer's numbers, as its upstream gave them.

    All zero when the answer told nothing. Once it told anything, -1 in a cache, draft or speed field
    says that this one was not reported. Nothing here is computed from wall time.
    """

    cache_tokens: int = 0
    draft_tokens: int = 0
    draft_acc_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    prompt_per_second: float = 0.0
    tokens_per_second: float = 0.0
    upstream_ms: int = 0  # prompt_ms + predicted_ms; a row lasts at least that long


NOTHING: Final = Usage()
"""Of an answer that reports nothing, and of a request that had none."""

# What an answer with an empty report comes to.
REPORTED: Final = Usage(
    cache_tokens=NOT_REPORTED,
    draft_tokens=NOT_REPORTED,
    draft_acc_tokens=NOT_REPORTED,
    prompt_per_second=NOT_REPORTED,
    tokens_per_second=NOT_REPORTED,
)


class Counts(NamedTuple):
    """What a ``usage`` object says; cache is -1 where it says nothing of it."""

    input: int
    output: int
    cache: int


def counts_of(usage: Mapping[str, Any]) -> Counts:
    """Read a ``usage`` object of Chat Completions, Responses or Messages."""
    return Counts(
        _first(usage, "prompt_tokens", "input_tokens"),
        _first(usage, "completion_tokens", "output_tokens"),
        _cached(usage),
    )


def assess(
    counts: Counts | None, timings: Mapping[str, Any] | None, metrics: Mapping[str, Any] | None
) -> Usage:
    """Put one answer's reports together: timings win over usage, metrics only add.

    Args:
        counts: None when the answer had no ``usage``.
        timings: llama.cpp's object; a field that it lacks counts as 0.
        metrics: vLLM's object.
    """
    usage = REPORTED if counts is None else _of_counts(counts)
    if timings is not None:
        usage = _with_timings(usage, timings)
    if metrics is not None:
        usage = _with_metrics(usage, metrics)
    return usage


def _of_counts(counts: Counts) -> Usage:
    return Usage(
        input_tokens=counts.input,
        output_tokens=counts.output,
        cache_tokens=counts.cache,
        draft_tokens=NOT_REPORTED,
        draft_acc_tokens=NOT_REPORTED,
        prompt_per_second=NOT_REPORTED,
        tokens_per_second=NOT_REPORTED,
    )


def _with_timings(usage: Usage, timings: Mapping[str, Any]) -> Usage:
    # Made anew: `replace` takes 1 us.
    get = timings.get
    drafts = "draft_n" in timings and "draft_n_accepted" in timings
    return Usage(
        cache_tokens=_whole(timings["cache_n"]) if "cache_n" in timings else usage.cache_tokens,
        draft_tokens=_whole(timings["draft_n"]) if drafts else usage.draft_tokens,
        draft_acc_tokens=_whole(timings["draft_n_accepted"]) if drafts else usage.draft_acc_tokens,
        input_tokens=_whole(get("prompt_n")),
        output_tokens=_whole(get("predicted_n")),
        prompt_per_second=_real(get("prompt_per_second")),
        tokens_per_second=_real(get("predicted_per_second")),
        upstream_ms=_whole(_real(get("prompt_ms")) + _real(get("predicted_ms"))),
    )


def _with_metrics(usage: Usage, metrics: Mapping[str, Any]) -> Usage:
    first_token = _real(metrics.get("time_to_first_token_ms"))
    between_tokens = _real(metrics.get("mean_itl_ms"))
    speculative = metrics.get("speculative_decoding")
    if (
        isinstance(speculative, dict)
        and {"num_draft_tokens", "num_accepted_draft_tokens"} <= speculative.keys()
    ):
        usage = replace(
            usage,
            draft_tokens=_whole(speculative["num_draft_tokens"]),
            draft_acc_tokens=_whole(speculative["num_accepted_draft_tokens"]),
        )
    if first_token > 0:
        processed = usage.input_tokens - max(usage.cache_tokens, 0)
        usage = replace(usage, prompt_per_second=_real(processed / (first_token / 1000)))
    if between_tokens > 0:
        usage = replace(usage, tokens_per_second=_real(1000 / between_tokens))
    return usage


def _first(usage: Mapping[str, Any], *keys: str) -> int:
    for key in keys:
        if key in usage:
            return _whole(usage[key])
    return 0


def _cached(usage: Mapping[str, Any]) -> int:
    if "cache_read_input_tokens" in usage:
        return _whole(usage["cache_read_input_tokens"])
    for key in ("input_tokens_details", "prompt_tokens_details"):
        details = usage.get(key)
        if isinstance(details, dict) and "cached_tokens" in details:
            return _whole(details["cached_tokens"])
    return NOT_REPORTED


def _whole(value: object) -> int:
    if type(value) is int and NOT_REPORTED <= value <= LARGEST:  # nearly always
        return value
    return int(_real(value))


def _real(value: object) -> float:
    """Take a number from strangers' JSON; anything else is 0, and what no counter can hold is cut."""
    if type(value) is float and NOT_REPORTED <= value <= LARGEST:  # nearly always; no NaN is
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    if isinstance(value, float) and not isfinite(value):
        return 0.0
    return float(min(max(value, NOT_REPORTED), LARGEST))
