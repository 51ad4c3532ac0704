"""Answers to meter: run one through a meter, whole or in pieces."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from llamaswap.metering.meter import Meter, Metered

EVENT_STREAM = "text/event-stream"


def metered(
    body: bytes | str | object,
    *,
    status: int = 200,
    content_type: str = "application/json",
    content_encoding: str = "",
    req_path: str = "/v1/chat/completions",
    cuts: Iterable[int] = (),
) -> Metered:
    """Meter one answer; what is neither bytes nor text is sent as JSON, `cuts` are offsets to split at."""
    meter = Meter(req_path=req_path)
    meter.begin(status=status, content_type=content_type, content_encoding=content_encoding)
    for piece in cut(as_bytes(body), cuts):
        meter.feed(piece)
    return meter.finish()


def as_bytes(body: bytes | str | object) -> bytes:
    """Turn a test's idea of a body into one."""
    if isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


def cut(data: bytes, offsets: Iterable[int]) -> Iterator[bytes]:
    """Split at the offsets, which may be out of order and out of range."""
    last = 0
    for offset in sorted({min(offset, len(data)) for offset in offsets}):
        yield data[last:offset]
        last = offset
    yield data[last:]


def events(*payloads: object, end: str = "\n\n", prefix: str = "data: ") -> bytes:
    """Frame payloads as an event stream; texts are sent as they are."""
    texts = (payload if isinstance(payload, str) else json.dumps(payload) for payload in payloads)
    return "".join(f"{prefix}{text}{end}" for text in texts).encode()
