"""Where an answer's JSON keeps its report of tokens and speeds.

Knows the shapes of whole bodies and of event streams' ``data:`` payloads; what the numbers mean is `usage`'s
business.  Each document is read once, by a decoder that skips all that it was not asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from llamaswap.metering.usage import NOTHING, Counts, Usage, assess, counts_of

_ABSENT: Final = msgspec.Raw()
_UNREADABLE: Final = (msgspec.DecodeError, RecursionError)  # the latter from absurdly deep nesting


class _Document(msgspec.Struct):
    usage: msgspec.Raw = _ABSENT
    response: msgspec.Raw = _ABSENT
    message: msgspec.Raw = _ABSENT
    timings: msgspec.Raw = _ABSENT
    metrics: msgspec.Raw = _ABSENT


_document: Final = msgspec.json.Decoder(_Document)
_elements: Final = msgspec.json.Decoder(list[msgspec.Raw])


def usage_of_body(body: bytes, req_path: str) -> Usage:
    """Read a whole JSON answer; zeros where it is not JSON or reports nothing."""
    if req_path.startswith("/infill") and body.lstrip()[:1] == b"[":
        return _usage_of_infill(body)
    document = _read(body)
    if document is None or not (document.usage or document.timings or document.metrics):
        return NOTHING
    # A null usage still is a report: of nothing.
    counts = counts_of(_mapping(document.usage) or {}) if document.usage else None
    return assess(counts, _mapping(document.timings), _mapping(document.metrics))


class StreamReport:
    """What the events of one stream have told so far."""

    def __init__(self) -> None:
        self._counts: Counts | None = None
        self._timings: bytes | None = None
        self._metrics: bytes | None = None

    def event(self, payload: bytes) -> None:
        """Take up one ``data:`` payload; ignore it unless it is a JSON object."""
        document = _read(payload)
        if document is None:
            return
        for raw in _usages(document):
            self._merge(counts_of(_mapping(raw) or {}))
        # llama-server can send timings with each token: only the last is worth reading, at the end.
        self._timings = _object(document.timings) or self._timings
        self._metrics = _object(document.metrics) or self._metrics

    def usage(self) -> Usage:
        """Sum up; zeros when no event reported anything."""
        if self._counts is None and self._timings is None and self._metrics is None:
            return NOTHING
        return assess(self._counts, _mapping(self._timings), _mapping(self._metrics))

    def _merge(self, new: Counts) -> None:
        """Keep the latest counts; a later event need not repeat what an earlier one said."""
        old = self._counts or Counts(0, 0, -1)
        self._counts = Counts(
            new.input if new.input > 0 else old.input,
            new.output if new.output > 0 else old.output,
            new.cache if new.cache >= 0 else old.cache,
        )


def _usages(document: _Document) -> Iterator[msgspec.Raw]:
    """Find usage where Chat Completions, Responses and Messages put it."""
    if document.usage:
        yield document.usage
    for nested in (document.response, document.message):
        inner = _read(nested) if nested else None
        if inner is not None and inner.usage:
            yield inner.usage


def _usage_of_infill(body: bytes) -> Usage:
    """Read llama-server's /infill, which may answer with an array: its last element has the timings."""
    try:
        elements = _elements.decode(body)
    except _UNREADABLE:
        return NOTHING
    last = _read(elements[-1]) if elements else None
    timings = _mapping(last.timings) if last is not None else None
    return NOTHING if timings is None else assess(None, timings, None)


def _object(raw: msgspec.Raw) -> bytes | None:
    text = bytes(raw)
    return text if text.startswith(b"{") else None


def _read(text: bytes | msgspec.Raw) -> _Document | None:
    try:
        return _document.decode(text)
    except _UNREADABLE:
        return None


def _mapping(raw: bytes | msgspec.Raw | None) -> dict[str, Any] | None:
    if not raw:
        return None
    try:
        value = msgspec.json.decode(raw)
    except _UNREADABLE:
        return None
    return value if isinstance(value, dict) else None
