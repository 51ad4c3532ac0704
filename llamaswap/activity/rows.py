"""A row as the database holds it, and back.

Pure.  Knows the columns and what SQLite takes; a row that it refused would hold up all that come after.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from llamaswap.activity.record import Activity
from llamaswap.metering.usage import Usage

# The order of columns in what `values_of` gives and `activity_of` takes.
FIELDS: Final = (
    "ts_created, model_id, req_path, resp_content_type, resp_status_code, cache_tokens, draft_tokens,"
    " draft_acc_tokens, input_tokens, output_tokens, prompt_per_second, tokens_per_second, duration_ms,"
    " error_msg, metadata_json"
)
INT64: Final = 2**63 - 1

Values = tuple[str | int | float, ...]
"""One row's columns, in the order of `FIELDS`; SQLite takes each of them."""

# A tenth of what `json.dumps` takes, which is what the other values of a row take together.
_encode: Final = msgspec.json.Encoder().encode


def values_of(row: Activity) -> Values:
    """Turn a row into its columns' values."""
    usage = row.usage
    return (
        _whole(row.ended),
        text_of(row.model),
        text_of(row.req_path),
        text_of(row.resp_content_type),
        _whole(row.resp_status_code),
        _whole(usage.cache_tokens),
        _whole(usage.draft_tokens),
        _whole(usage.draft_acc_tokens),
        _whole(usage.input_tokens),
        _whole(usage.output_tokens),
        _real(usage.prompt_per_second),
        _real(usage.tokens_per_second),
        _whole(row.lasted_ms),
        text_of(row.error_msg),
        _metadata_json(row.metadata) if row.metadata else "",
    )


def activity_of(values: Sequence[Any]) -> Activity:
    """Turn columns back into a row, also those that another program wrote."""
    (ended, model, req_path, content_type, status, cache, draft, draft_acc, *rest) = values
    (input_tokens, output_tokens, prompt_speed, gen_speed, duration, error, metadata) = rest
    return Activity(
        ended=ended,
        model=model,
        req_path=req_path,
        resp_content_type=content_type,
        resp_status_code=status,
        usage=Usage(
            cache_tokens=cache,
            draft_tokens=draft,
            draft_acc_tokens=draft_acc,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            prompt_per_second=prompt_speed,
            tokens_per_second=gen_speed,
        ),
        duration_ms=duration,
        error_msg=error,
        metadata=_metadata(metadata),
    )


def _metadata_json(metadata: Mapping[str, str]) -> str:
    try:
        return _encode(metadata).decode()
    except UnicodeEncodeError:  # a lone surrogate, which only `json` can write
        return json.dumps(dict(metadata))


def _metadata(text: str) -> dict[str, str]:
    try:
        read = json.loads(text) if text else {}
    except ValueError:
        return {}
    return {key: str(value) for key, value in read.items()} if isinstance(read, dict) else {}


def text_of(text: str) -> str:
    """Make a text storable: bytes of a request that were no UTF-8 live on in it as lone surrogates."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _whole(number: float) -> int:
    if type(number) is int and -INT64 <= number <= INT64:  # nearly always
        return number
    return min(max(int(_real(number)), -INT64), INT64)


def _real(number: float) -> float:
    return number if math.isfinite(number) else 0.0
