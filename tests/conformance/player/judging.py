"""An answer, and what reached the stubs meanwhile, held against an expectation.

Every function returns the first difference as a text, '' when there is none.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from conformance.player.answers import Answer
from conformance.player.matching import difference

Expectation = Mapping[str, Any]
Note = Mapping[str, Any]

_SHOWN = 300  # characters of a body in a complaint


def judge(want: Expectation, answer: Answer, saw: Sequence[Note] | None) -> str:
    """What is wrong with an answer.

    Args:
        want: one entry of `expect`, with its placeholders filled in.
        answer: what came.
        saw: what the stubs recorded meanwhile; None when that can't be told.
    """
    checks = (_raw, _status, _headers, _trailers, _bodies, _end, _time)
    found = next(filter(None, (check(want, answer) for check in checks)), "")
    if not found and "upstream_saw" in want and saw is not None:
        return judge_upstream(want["upstream_saw"], saw)
    return found


def judge_upstream(want: Sequence[Expectation], saw: Sequence[Note]) -> str:
    """What is wrong with the requests that the stubs recorded."""
    lines = [note["line"] for note in saw]
    if len(want) != len(saw):
        return f"upstream saw {lines}, expected {[one.get('line') for one in want]}"
    found = (_request(one, note) for one, note in zip(want, saw, strict=True))
    return next(filter(None, found), "")


def _raw(want: Expectation, answer: Answer) -> str:
    pattern = want.get("raw_re")
    text = answer.raw.decode("latin-1")
    if pattern is None or re.search(pattern, text, re.DOTALL):
        return ""
    return f"raw answer {text[:_SHOWN]!r} does not match {pattern!r}"


def _status(want: Expectation, answer: Answer) -> str:
    expected = want.get("status", answer.status)
    if answer.status in (expected if isinstance(expected, list) else [expected]):
        return ""
    return f"status {answer.status} is not {expected}; body {answer.body[:_SHOWN]!r}"


def _headers(want: Expectation, answer: Answer) -> str:
    return _fields(want.get("headers", {}), answer.headers, "header")


def _trailers(want: Expectation, answer: Answer) -> str:
    return _fields(want.get("trailers", {}), answer.trailers, "trailer")


def _fields(want: Mapping[str, Any], have: Sequence[Sequence[str]], what: str) -> str:
    values: dict[str, list[str]] = {}
    for name, value in have:
        values.setdefault(name.lower(), []).append(value)
    for name, expected in want.items():
        joined = ", ".join(values[name.lower()]) if name.lower() in values else None
        if not _is_field(expected, joined):
            return f"{what} {name}: {joined!r} is not {expected!r}"
    return ""


def _is_field(expected: Any, value: str | None) -> bool:
    if isinstance(expected, dict):
        return value is not None and re.fullmatch(expected["re"], value, re.DOTALL) is not None
    return bool(value == expected)


def _end(want: Expectation, answer: Answer) -> str:
    return "" if want.get("end", answer.end) == answer.end else f"end {answer.end} is not {want['end']}"


def _time(want: Expectation, answer: Answer) -> str:
    if want.get("min_s", 0) <= answer.took <= want.get("max_s", answer.took):
        return ""
    return f"took {answer.took:.2f} s"


def _bodies(want: Expectation, answer: Answer) -> str:
    if "body" not in want:
        return ""
    rules = want["body"] if isinstance(want["body"], list) else [want["body"]]
    found = (_BODIES[name](rule[name], answer.body) for rule in rules for name in rule)
    return next(filter(None, found), "")


def _json_subset(want: Any, body: bytes) -> str:
    try:
        return difference(want, json.loads(body))
    except ValueError:
        return f"body is not JSON: {_text(body)[:_SHOWN]!r}"


def _json(want: Any, body: bytes) -> str:
    found = _json_subset(want, body)
    have = None if found else json.loads(body)
    extra = sorted(have.keys() - want.keys()) if isinstance(have, dict) else []
    return found or (f"unexpected keys {extra}" if extra else "")


def _size(want: int, body: bytes) -> str:
    return "" if len(body) == want else f"body has {len(body)} bytes, not {want}"


def _same_text(want: str, body: bytes) -> str:
    return "" if _text(body) == want else f"body {_text(body)[:_SHOWN]!r} is not {want[:_SHOWN]!r}"


def _same_bytes(want: str, body: bytes) -> str:
    return "" if body == base64.b64decode(want) else f"body {body[:_SHOWN]!r} differs"


def _matches(want: str, body: bytes) -> str:
    fine = re.search(want, _text(body), re.DOTALL)
    return "" if fine else f"body {_text(body)[:_SHOWN]!r} does not match {want!r}"


def _does_not_match(want: str, body: bytes) -> str:
    return f"body {_text(body)[:_SHOWN]!r} matches {want!r}" if not _matches(want, body) else ""


def _first_events(want: list[Any], body: bytes) -> str:
    return difference(want, _events(body)[: len(want)])


def _events_in_order(want: list[Any], body: bytes) -> str:
    events = iter(_events(body))
    for one in want:
        if all(difference(one, event) for event in events):
            kinds = [event.get("type") for event in _events(body)]
            return f"no event like {one!r}, in that order, in {kinds}"
    return ""


def _events(body: bytes) -> list[dict[str, Any]]:
    """The messages of a stream of `{"type", "data"}`, the data decoded."""
    blocks = _text(body).split("\n\n")[:-1]
    return [_event(line) for block in blocks for line in block.split("\n") if line.startswith("data:")]


def _event(line: str) -> dict[str, Any]:
    try:
        message = json.loads(line.removeprefix("data:"))
        return {"type": message["type"], "data": json.loads(message["data"])}
    except (ValueError, KeyError, TypeError):
        return {"bad": line}


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")


_BODIES: Mapping[str, Callable[[Any, bytes], str]] = {
    "json_subset": _json_subset,
    "json": _json,
    "size": _size,
    "text": _same_text,
    "b64": _same_bytes,
    "re": _matches,
    "not_re": _does_not_match,
    "first_events": _first_events,
    "events_in_order": _events_in_order,
}


def _request(want: Expectation, note: Note) -> str:
    for key in ("model", "line", "framing", "body", "body_b64", "size"):
        if key in want and want[key] != note.get(key):
            return f"upstream saw {key} {note.get(key)!r}, expected {want[key]!r}"
    body = note.get("body", "")
    if "body_re" in want and not re.search(want["body_re"], body, re.DOTALL):
        return f"upstream saw body {body!r}, expected {want['body_re']!r}"
    if "body_json" in want and (found := _json_subset(want["body_json"], body.encode())):
        return f"upstream saw {found}"
    return _fields(want.get("headers", {}), note["headers"], "upstream saw header")
