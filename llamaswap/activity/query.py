"""What a reader of the activity list may ask, from the pairs of a query string.

Pure: decoded pairs in, a question or the refusal's words out.  Answering is `store`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import floor
from typing import Final

# The API's names for the columns a list can be sorted by.
SORTS: Final = {
    "id": "id",
    "time": "ts_created",
    "model": "model_id",
    "req_path": "req_path",
    "resp_status_code": "resp_status_code",
    "resp_content_type": "resp_content_type",
    "cached": "cache_tokens",
    "prompt": "input_tokens",
    "generated": "output_tokens",
    "drafted": "draft_tokens",
    "prompt_speed": "prompt_per_second",
    "gen_speed": "tokens_per_second",
    "duration": "duration_ms",
}

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)", flags=re.ASCII)


class BadQuery(ValueError):
    """The question cannot be answered; the text is the message for the client (status 400)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityQuery:
    """Which rows, in which order, and which page of them; all conditions hold together."""

    limit: int = 25  # rows a page, 1..999
    page: int = 1  # from 1
    sort: str = "id"  # a key of SORTS
    descending: bool = True
    models: tuple[str, ...] = ()  # any of these; () = all
    start: int | None = None  # unix seconds, inclusive
    end: int | None = None  # unix seconds, inclusive
    min_id: int | None = None
    max_id: int | None = None


def parse_query(pairs: Sequence[tuple[str, str]]) -> ActivityQuery:
    """Read a query string's pairs; of a repeated name the first counts, a blank value is none.

    Raises:
        BadQuery: the first of the mistakes, in the order of the fields.
    """
    given: dict[str, str] = {}
    for name, value in pairs:
        given.setdefault(name, value)
    limit = _limit(given.get("limit", ""))
    page = _at_least_one("page", given.get("page", "")) or 1
    sort = _sort(given.get("sort", ""))
    descending = _descending(given.get("order", ""))
    start, end = _span(given.get("start", ""), given.get("end", ""))
    min_id = _at_least_one("min_id", given.get("min_id", ""))
    max_id = _at_least_one("max_id", given.get("max_id", ""))
    if min_id is not None and max_id is not None and min_id > max_id:
        raise BadQuery("min_id must be <= max_id")
    return ActivityQuery(
        limit=limit,
        page=page,
        sort=sort,
        descending=descending,
        models=tuple(value for name, value in pairs if name == "model" and value.strip()),
        start=start,
        end=end,
        min_id=min_id,
        max_id=max_id,
    )


def _limit(text: str) -> int:
    if not text:
        return 25
    limit = _integer(text)
    if limit is None:
        raise BadQuery("invalid limit")
    if not 1 <= limit <= 999:
        raise BadQuery("limit must be between 1 and 999")
    return limit


def _at_least_one(name: str, text: str) -> int | None:
    if not text:
        return None
    number = _integer(text)
    if number is None or number < 1:
        raise BadQuery(f"{name} must be >= 1")
    return number


def _sort(text: str) -> str:
    if text and text not in SORTS:
        raise BadQuery("invalid sort column")
    return text or "id"


def _descending(text: str) -> bool:
    order = text.lower() or "desc"
    if order not in ("asc", "desc"):
        raise BadQuery("order must be asc or desc")
    return order == "desc"


def _span(start_text: str, end_text: str) -> tuple[int | None, int | None]:
    start, end = _moment("start", start_text), _moment("end", end_text)
    if start is not None and end is not None and start > end:
        raise BadQuery("start must be before end")
    return _second(start), _second(end)


def _moment(name: str, text: str) -> float | None:
    if not text:
        return None
    try:
        # Python reads more than RFC 3339 allows: dates alone, weeks, times without a zone.
        if _MOMENT.fullmatch(text):
            return datetime.fromisoformat(text).timestamp()
    except ValueError:
        pass  # the thirteenth month and its like
    raise BadQuery(f"invalid '{name}' timestamp, use RFC3339 format")


def _second(moment: float | None) -> int | None:
    return None if moment is None else floor(moment)


def _integer(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) else None
