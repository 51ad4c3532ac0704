"""Forms of several parts, as clients write them.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Part = tuple[str, str] | tuple[str, str, bytes]
"""A field and its value, or a field, the name of a file, and its content."""


def a_file(field: str, name: str, content: bytes) -> Part:
    """A part that is a file."""
    return (field, name, content)


@dataclass(frozen=True, slots=True)
class Form:
    """A form as it goes over the wire."""

    boundary: str
    parts: Sequence[Part]

    @property
    def content_type(self) -> str:
        """With its boundary, in quotes where it has to be."""
        plain = all(sign.isalnum() or sign in "-_." for sign in self.boundary)
        written = self.boundary if plain else f'"{self.boundary}"'
        return f"multipart/form-data; boundary={written}"

    @property
    def body(self) -> bytes:
        """All parts, each behind the boundary."""
        mark = b"--" + self.boundary.encode()
        return b"".join(mark + b"\r\n" + _written(part) + b"\r\n" for part in self.parts) + mark + b"--\r\n"


def _written(part: Part) -> bytes:
    if len(part) == 2:
        field, value = part
        return f'Content-Disposition: form-data; name="{field}"\r\n\r\n{value}'.encode()
    field, name, content = part
    quoted = name.replace('"', "%22")
    head = f'Content-Disposition: form-data; name="{field}"; filename="{quoted}"'
    return f"{head}\r\nContent-Type: audio/wav\r\n\r\n".encode() + content
