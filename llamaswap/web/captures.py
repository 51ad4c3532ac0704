"""`/api/captures/{id}`: what was asked and answered, for as long as it is kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from llamaswap.errors import BadRequest, Refusal
from llamaswap.http1.exchange import Exchange
from llamaswap.metering.captures import Captures
from llamaswap.web.answers import answer_json, answer_not_found

_INTEGER = re.compile(rb"[+-]?[0-9]{1,18}")


class CaptureNotFound(Refusal):
    """There never was one, it has given way to newer ones, or nothing is captured."""

    status = 404

    def __init__(self) -> None:
        super().__init__("capture not found")


def show_capture(exchange: Exchange, captures: Captures, rest: bytes) -> None:
    """Answer `GET /api/captures/<rest>`.

    Args:
        rest: still escaped.

    Raises:
        BadRequest: the id is no integer.
        CaptureNotFound: nothing is kept under it.
    """
    if not rest or b"/" in rest:
        answer_not_found(exchange)
        return
    row_id = unquote_to_bytes(rest)
    if _INTEGER.fullmatch(row_id) is None:
        raise BadRequest("invalid capture ID")
    shown = captures.show(int(row_id))
    if shown is None:
        raise CaptureNotFound
    answer_json(exchange, shown)


def mark_captured(rows: Sequence[dict[str, Any]], captures: Captures) -> None:
    """Say in rows of the activity list which of them have a capture now."""
    for row in rows:
        row["has_capture"] = row["id"] in captures
