"""One inference call, as far as we need to understand it: which model, streaming or not."""

from __future__ import annotations

from typing import Final

import msgspec

from llamaswap.calls.forms import form_field, multipart_field, query_field
from llamaswap.calls.peek import peek_json
from llamaswap.errors import NoModel

LOOKS: Final = frozenset({b"GET", b"HEAD"})
"""Methods that only look at something: the model is named in the query, and nothing is worked on for them."""

_COUNTING: Final = frozenset({"count_tokens", "tokenize", "detokenize", "apply-template"})


class Call(msgspec.Struct, frozen=True):
    """What the caller asked for."""

    model: str  # as requested: an id, an alias, or something unknown
    stream: bool


def read_call(method: bytes, query: bytes | None, content_type: str, body: bytes) -> Call:
    """Find the model where llama-swap looks for it.

    GET and HEAD: the query.  Otherwise by content type (a substring, case
    matters): the JSON body, the multipart form (the query wins), or the
    urlencoded form (the body wins, and must be readable).

    Raises:
        NoModel: there is none, or the body cannot be read that far.
    """
    call = _read(method, query, content_type, body)
    if not call.model:
        raise NoModel
    return call


def only_counts(path: str) -> bool:
    """Return whether a call only counts or formats, wherever it is asked for: its run tells nothing."""
    return path.rsplit("/", 1)[-1] in _COUNTING


def _read(method: bytes, query: bytes | None, content_type: str, body: bytes) -> Call:
    if method in LOOKS:
        return Call(query_field(query, "model"), query_field(query, "stream") == "true")
    if "application/json" in content_type:
        peek = peek_json(body)
        return Call(peek.model, peek.stream)
    if "multipart/form-data" in content_type:
        model = query_field(query, "model") or multipart_field(content_type, body, "model")
        return Call(model, model != "" and multipart_field(content_type, body, "stream") == "true")
    form = body if "application/x-www-form-urlencoded" in content_type else b""
    named = form_field(form, "model")
    if named is None:
        raise NoModel
    stream = query_field(form, "stream") or query_field(query, "stream")
    return Call(named or query_field(query, "model"), stream == "true")
