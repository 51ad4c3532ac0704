"""Change single keys of a JSON body and leave every other byte as it is.

Pure.  Edits are textual: key order, spacing, long numbers and keys that are
there twice survive, and a new key goes to the end of its object.  A body that
cannot be read is left alone: refusing it is the upstream's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llamaswap.calls.document import Container, Item, Unreadable, Value, open_value, text_of
from llamaswap.calls.json_text import json_text
from llamaswap.calls.paths import Path, Step, parse_path
from llamaswap.errors import Refusal

MOST_PADDING = 1000
"""Elements that setting one behind the end of an array may add."""

_BOM = b"\xef\xbb\xbf"


class EditFailed(Refusal):
    """The configuration asks for an edit that this body does not allow.

    Args:
        param: the key, as configured.
        why: one line.
    """

    status = 500

    def __init__(self, param: str, why: str) -> None:
        super().__init__(f"cannot change parameter {param!r} of the request: {why}")


@dataclass(frozen=True, slots=True)
class Edit:
    """One key to set or to delete."""

    param: str  # a dotted path
    text: bytes | None = None  # JSON; None deletes


def edit_json(body: bytes, edits: Sequence[Edit]) -> bytes:
    """Carry the edits out in order.

    A key that is there twice is changed where it stands first.  A key that is a
    search (`a.*`) is ignored when setting.

    Returns:
        The new body; the very same object when there was nothing to change, or
        when the body is no JSON object or too deep or too large to be opened.

    Raises:
        EditFailed: a search is to be deleted, an array is to get a named member, or an index is far
            behind its end.
    """
    paths = [(edit, path) for edit in edits if (path := _path_of(edit)) is not None]
    mark = _BOM if body.startswith(_BOM) else b""
    try:
        root = open_value(body[len(mark) :]) if paths else None
        if root is None or root.is_array:
            return body
        # Not any(...) of a generator: each edit has to happen.
        changes = [_carry_out(root, path, edit) for edit, path in paths]
    except Unreadable:
        return body
    return mark + text_of(root) if any(changes) else body


def _path_of(edit: Edit) -> Path | None:
    if not edit.param:
        raise EditFailed(edit.param, "it has no name")
    path = parse_path(edit.param)
    if path is None and edit.text is None:
        raise EditFailed(edit.param, "it is a search, and a search cannot be deleted")
    return path


def _carry_out(root: Container, path: Path, edit: Edit) -> bool:
    """Return whether the document has changed."""
    if edit.text is None:
        return _delete(root, path)
    _set(root, path, edit.text, edit.param)
    return True


def _delete(inside: Container, path: Path) -> bool:
    at = _find(inside, path[0], last=True)
    if at is None:
        return False
    if len(path) == 1:
        _remove(inside, at)
        return True
    deeper = _step_into(inside.items[at])
    return deeper is not None and _delete(deeper, path[1:])


def _remove(inside: Container, at: int) -> None:
    """Take an item out, with the comma before it, or else the one behind it."""
    gone = inside.items.pop(at)
    if at:
        inside.items[at - 1].trail += gone.trail
    elif not inside.items:
        inside.hollow = gone.trail


def _set(inside: Container, path: Path, text: bytes, param: str) -> None:
    at = _find(inside, path[0])
    if at is None:
        _append(inside, path, text, param)
        return
    item = inside.items[at]
    if len(path) == 1:
        item.value = text
        return
    deeper = _step_into(item)
    if deeper is None:
        item.value = _built(path[1:], text, param)
    else:
        _set(deeper, path[1:], text, param)


def _step_into(item: Item) -> Container | None:
    """Open what an item holds, for good; None for a value that has no inside."""
    opened = open_value(item.value)
    if opened is not None:
        item.value = opened
    return opened


def _find(inside: Container, step: Step, *, last: bool = False) -> int | None:
    """Return the place of a step's item.

    Args:
        last: the end of an array means its last element, not the place behind it.
    """
    if inside.is_array:
        index = step.index
        if step.is_end and last:
            index = len(inside.items) - 1
        return index if index is not None and 0 <= index < len(inside.items) else None
    return next((at for at, item in enumerate(inside.items) if item.name == step.key), None)


def _append(inside: Container, path: Path, text: bytes, param: str) -> None:
    step = path[0]
    if inside.is_array:
        if not step.wants_array:
            raise EditFailed(param, f"{step.key!r} is no index of an array")
        wanted = len(inside.items) if step.index is None else step.index
        for _ in range(_padding(wanted - len(inside.items), param)):
            _put(inside, Item(b"", b"null"))
    _put(inside, _item(inside, step, _value(path, text, param)))


def _item(inside: Container, step: Step, value: Value) -> Item:
    if inside.is_array:
        return Item(b"", value)
    return Item(json_text(step.key) + b":", value, name=step.key)


def _put(inside: Container, item: Item) -> None:
    """Append an item; what blanks there were between empty brackets stay before it."""
    item.lead = inside.hollow + item.lead
    inside.hollow = b""
    inside.items.append(item)


def _value(path: Path, text: bytes, param: str) -> bytes:
    return text if len(path) == 1 else _built(path[1:], text, param)


def _built(path: Path, text: bytes, param: str) -> bytes:
    """Return a new container with the way to the value inside."""
    step, value = path[0], _value(path, text, param)
    if step.wants_array:
        return b"[%b%b]" % (b"null," * _padding(step.index or 0, param), value)
    return b"{%b:%b}" % (json_text(step.key), value)


def _padding(missing: int, param: str) -> int:
    if missing > MOST_PADDING:
        raise EditFailed(param, f"that is more than {MOST_PADDING} elements behind the end")
    return missing
