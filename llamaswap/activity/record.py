"""What is remembered of one request, and how it is shown as JSON.

Pure.  Knows neither how a row is stored nor what happened to make it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from llamaswap.metering.usage import NOTHING, Usage

ABORTED: Final = 499  # resp_status_code of a request whose client left

_LAST_SECOND: Final = 253402300799  # of the year 9999


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """One request, from its arrival to the end of its answer.

    A struct, because one is made for each request: 0.2 us, where a frozen dataclass takes 1.5.
    """

    ended: float  # unix seconds, wall clock
    model: str  # as resolved; as asked for where it is unknown or a peer's
    req_path: str  # as sent upstream
    resp_content_type: str = ""
    resp_status_code: int
    usage: Usage = NOTHING
    duration_ms: int  # by our clock, waiting and loading included
    error_msg: str = ""
    metadata: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def lasted_ms(self) -> int:
        """How long it took: our clock's word, unless the upstream says that it was busy for longer."""
        return max(self.duration_ms, self.usage.upstream_ms)


def row_json(row_id: int, activity: Activity) -> dict[str, Any]:
    """Show a row as the API's object; an empty error or metadata is left out.

    Whether it has a capture is for whoever keeps those to say.
    """
    usage = activity.usage
    row: dict[str, Any] = {
        "id": row_id,
        "timestamp": timestamp(activity.ended),
        "model": activity.model,
        "req_path": activity.req_path,
        "resp_content_type": activity.resp_content_type,
        "resp_status_code": activity.resp_status_code,
        "tokens": {
            "cache_tokens": usage.cache_tokens,
            "draft_tokens": usage.draft_tokens,
            "draft_acc_tokens": usage.draft_acc_tokens,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "prompt_per_second": usage.prompt_per_second,
            "tokens_per_second": usage.tokens_per_second,
        },
        "duration_ms": activity.lasted_ms,
        "has_capture": False,
    }
    if activity.error_msg:
        row["error_msg"] = activity.error_msg
    if activity.metadata:
        row["metadata"] = dict(activity.metadata)
    return row


def timestamp(seconds: float) -> str:
    """Write unix seconds as RFC 3339 in the server's zone, whole seconds, ``Z`` for UTC."""
    # A file of another program may hold any number.
    whole = min(max(int(seconds), 0), _LAST_SECOND - 86400)
    text = datetime.fromtimestamp(whole, tz=UTC).astimezone().isoformat(timespec="seconds")
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text
