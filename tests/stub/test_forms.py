"""Forms of several parts."""

from __future__ import annotations

import pytest

from llamaswap.stub.forms import boundary_of, read_form
from llamaswap.stub.texts import digest

SOUND = b"RIFF\r\n--x\r\n\r\n\x00\xff--"


def part(head: str, content: bytes, boundary: bytes) -> bytes:
    return b"--" + boundary + b"\r\n" + head.encode() + b"\r\n\r\n" + content + b"\r\n"


@pytest.mark.parametrize("boundary", ["b", "a b'c", "----X=Y?(z)"])
@pytest.mark.parametrize("file_first", [True, False])
def test_fields_and_files_are_found_in_any_order(boundary: str, file_first: bool) -> None:
    edge = boundary.encode()
    file = part('Content-Disposition: form-data; name="file"; filename="ü x.wav"', SOUND, edge)
    model = part('Content-Disposition: form-data; name="model"', b"A", edge)
    body = (file + model if file_first else model + file) + b"--" + edge + b"--\r\n"

    form = read_form(f'multipart/form-data; boundary="{boundary}"', body)

    assert form.fields == {"model": "A"}
    assert form.files == {
        "file": {"name": "ü x.wav", "size_bytes": len(SOUND), "sha256": digest(SOUND)},
    }


def test_a_bare_boundary_ends_at_its_semicolon() -> None:
    assert boundary_of("Multipart/Form-Data; boundary=abc; charset=utf-8") == b"abc"


@pytest.mark.parametrize("kind", ["", "application/json", "multipart/form-data"])
def test_what_is_no_form_is_empty(kind: str) -> None:
    form = read_form(kind, b"--\r\n\r\n--")

    assert (form.fields, form.files) == ({}, {})
