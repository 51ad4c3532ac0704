"""What is in a form of several parts: the fields, and the hashes of the files.

Pure.  Reads what a correct client sends, and says of anything else that it is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from llamaswap.stub.texts import digest


@dataclass(slots=True)
class Form:
    """A form that was read."""

    fields: dict[str, str] = field(default_factory=dict)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)  # by field: name, size_bytes, sha256


def boundary_of(content_type: str) -> bytes:
    """The boundary that a content type names; empty if it is no form's."""
    if not content_type.lower().startswith("multipart/form-data"):
        return b""
    found = re.search(r'boundary=(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))', content_type, re.IGNORECASE)
    if found is None:
        return b""
    return (re.sub(r"\\(.)", r"\1", found[1]) if found[1] is not None else found[2]).encode("latin-1")


def read_form(content_type: str, body: bytes) -> Form:
    """Read a form; empty if it is none."""
    form = Form()
    boundary = boundary_of(content_type)
    parts = (b"\r\n" + body).split(b"\r\n--" + boundary) if boundary else []
    for part in parts[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        _add(form, head.decode("utf-8", "replace"), content)
    return form


def _add(form: Form, head: str, content: bytes) -> None:
    name, filename = _parameter(head, "name"), _parameter(head, "filename")
    if name is None:
        return
    if filename is None:
        form.fields[name] = content.decode("utf-8", "replace")
    else:
        form.files[name] = {"name": filename, "size_bytes": len(content), "sha256": digest(content)}


def _parameter(head: str, name: str) -> str | None:
    found = re.search(rf'[;\s]{name}="((?:[^"\\]|\\.)*)"', head)
    return None if found is None else found[1]
