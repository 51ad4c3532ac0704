"""What of a request is changed on its way to a model: its name, and the filters' keys.

Pure.  Works on the body as it was before any framing; how the new one is framed is
the sender's business.  Where nothing has to change, nothing is touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from llamaswap.calls.call import LOOKS, Call
from llamaswap.calls.edits import Edit, EditFailed, edit_json
from llamaswap.calls.form_edits import set_multipart_field, set_query_field
from llamaswap.calls.forms import query_field
from llamaswap.calls.json_text import json_text
from llamaswap.calls.peek import peek_json
from llamaswap.calls.resolution import Destination, Local, Remote, Resolved, qualified_name
from llamaswap.config.model import Filters

MODEL = "model"
"""The one key that filters never touch."""


class Outbound(msgspec.Struct, frozen=True):
    """A request as its upstream shall see it."""

    target: bytes  # path and query, escaped
    body: bytes | None = None  # unframed; None = as it came, framing included


def rewrite(
    method: bytes, target: bytes, content_type: str, body: bytes, call: Call, resolved: Resolved
) -> Outbound:
    """Rewrite a request that names its model in its query or body, as `read_call` found it.

    JSON: the name (`useModelName` or the peer's own one), then `stripParams`,
    `setParams` and `setParamsByID` of the name that was asked for.  Other bodies
    and queries: the name only, and only where one stands.

    Args:
        target: path and query; the path is not changed.
        body: unframed.
        resolved: with a destination.

    Raises:
        EditFailed: the filters cannot be applied to this body.
    """
    destination = resolved.destination
    if destination is None:
        return Outbound(target)
    if method in LOOKS:
        return Outbound(_renamed_query(target, call, _own_name(destination, resolved)))
    if "application/json" in content_type:
        edits = _edits(destination, resolved, call)
        return Outbound(target, _changed(body, edit_json(body, edits)) if edits else None)
    if "multipart/form-data" in content_type:
        name = _model_name(destination, resolved)
        return _renamed_multipart(target, content_type, body, call, name)
    name = _own_name(destination, resolved)
    return _renamed_form(target, content_type, body, call, name)


def rewrite_for_peer(content_type: str, body: bytes, remote: Remote) -> bytes | None:
    """Rewrite a JSON body that goes to a peer by path, where it says the peer's qualified name.

    Returns:
        The new body, or None where it stays as it is.
    """
    if "application/json" not in content_type or peek_json(body).model != qualified_name(remote):
        return None
    return _changed(body, edit_json(body, [Edit(MODEL, json_text(remote.model))]))


def _changed(before: bytes, after: bytes) -> bytes | None:
    return None if after is before else after


def _own_name(destination: Destination, resolved: Resolved) -> str:
    """Return the name that forms and queries say to the upstream."""
    return destination.model if isinstance(destination, Remote) else resolved.requested


def _model_name(destination: Destination, resolved: Resolved) -> str:
    """Return the name that JSON and multipart bodies say to the upstream."""
    if isinstance(destination, Local) and destination.model.use_model_name:
        return destination.model.use_model_name
    return _own_name(destination, resolved)


# JSON.


def _edits(destination: Destination, resolved: Resolved, call: Call) -> list[Edit]:
    name = _model_name(destination, resolved)
    edits = [] if name == call.model else [Edit(MODEL, json_text(name))]
    filters = _filters(destination)
    if filters.strip:
        edits += [Edit(param) for param in filters.strip if param != MODEL]
    if filters.set:
        edits += _settings(filters.set)
    if filters.set_by_id:
        edits += _settings(filters.set_by_id.get(resolved.requested, {}))
    return edits


def _filters(destination: Destination) -> Filters:
    return destination.model.filters if isinstance(destination, Local) else destination.peer.filters


def _settings(params: Mapping[str, Any]) -> Iterator[Edit]:
    for param in sorted(params):
        if param == MODEL:
            continue
        try:
            text = json_text(params[param])
        except ValueError as error:
            raise EditFailed(param, str(error)) from error
        yield Edit(param, text)


# Forms and queries.


def _renamed_query(target: bytes, call: Call, name: str) -> bytes:
    path, mark, query = target.partition(b"?")
    if name == call.model or not query_field(query, MODEL):
        return target
    return path + mark + set_query_field(query, MODEL, name)


def _renamed_multipart(target: bytes, content_type: str, body: bytes, call: Call, name: str) -> Outbound:
    if name == call.model:
        return Outbound(target)
    changed = set_multipart_field(content_type, body, MODEL, name)
    return Outbound(_renamed_query(target, call, name), _changed(body, changed))


def _renamed_form(target: bytes, content_type: str, body: bytes, call: Call, name: str) -> Outbound:
    if name == call.model:
        return Outbound(target)
    target = _renamed_query(target, call, name)
    is_form = "application/x-www-form-urlencoded" in content_type
    if is_form and query_field(body, MODEL):
        return Outbound(target, set_query_field(body, MODEL, name))
    return Outbound(target)
