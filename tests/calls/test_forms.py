"""Which model a form names, in any of its three kinds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.calls.forms import (
    MOST_FORM_BYTES,
    MOST_PAIRS,
    MOST_PART_HEAD_BYTES,
    form_field,
    multipart_field,
    query_field,
)

CRLF = "\r\n"


def multipart(*parts: tuple[str, bytes], boundary: str = "xyz") -> bytes:
    """Build a multipart body of (header lines, content)."""
    pieces = [f"--{boundary}\r\n{head}\r\n\r\n".encode() + content + b"\r\n" for head, content in parts]
    return b"".join(pieces) + f"--{boundary}--\r\n".encode()


def field(name: str, value: str) -> tuple[str, bytes]:
    """A part that is a plain field."""
    return f'Content-Disposition: form-data; name="{name}"', value.encode()


FILE = (
    'Content-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav',
    b"\0\xff\r\n--x",
)
TYPE = "multipart/form-data; boundary=xyz"


@pytest.mark.parametrize(
    ("query", "value"),
    [
        (None, ""),
        (b"", ""),
        (b"model=m1", "m1"),
        (b"x=1&model=m1&model=m2", "m1"),
        (b"model=author%2Fm+2", "author/m 2"),
        (b"mod%65l=m1", "m1"),
        (b"model=&x", ""),
        (b"Model=m1", ""),
        (b"xmodel=m1", ""),
        (b"model=m1;x=2", ""),
        (b"a=1;b&model=m1", "m1"),
        (b"bad=%zz&model=m1", "m1"),
        (b"model=%zz&model=m1", "m1"),
        (b"model=gr%C3%B6%C3%9Fe", "größe"),
        (b"model=a=b", "a=b"),
        (b"model", ""),
    ],
)
def test_a_query_gives_its_first_readable_value(query: bytes | None, value: str) -> None:
    assert query_field(query, "model") == value


def test_a_form_with_one_bad_pair_gives_nothing() -> None:
    assert form_field(b"x=1&model=m1", "model") == "m1"
    assert form_field(b"x=%zz&model=m1", "model") is None
    assert form_field(b"model=m1&a;b", "model") is None
    assert form_field(b"x=1", "model") == ""


def test_a_form_that_is_too_large_gives_nothing() -> None:
    assert form_field(b"a&" * (MOST_PAIRS - 1) + b"model=m1", "model") == "m1"
    assert form_field(b"a&" * MOST_PAIRS + b"model=m1", "model") is None
    assert form_field(b"model=m1&x=".ljust(MOST_FORM_BYTES, b"x"), "model") == "m1"
    assert form_field(b"model=m1&x=".ljust(MOST_FORM_BYTES + 1, b"x"), "model") is None


@pytest.mark.parametrize(
    "content_type",
    [
        TYPE,
        'multipart/form-data; boundary="xyz"',
        "multipart/form-data;charset=utf-8;boundary=xyz",
        "multipart/form-data; BOUNDARY=xyz",
        'multipart/form-data; x="a;boundary=no"; boundary=xyz',
    ],
)
def test_the_boundary_may_be_written_in_many_ways(content_type: str) -> None:
    body = multipart(FILE, field("model", "m1"), field("model", "m2"))

    assert multipart_field(content_type, body, "model") == "m1"


@pytest.mark.parametrize("boundary", ["a b", "--", "x:y/z?", "'()+_,-./:=?", "0" * 70])
def test_a_quoted_boundary_may_hold_blanks_and_signs(boundary: str) -> None:
    body = multipart(FILE, field("model", "m1"), boundary=boundary)

    assert multipart_field(f'multipart/form-data; boundary="{boundary}"', body, "model") == "m1"


@pytest.mark.parametrize(
    ("head", "found"),
    [
        ('Content-Disposition: form-data; name="model"', "v"),
        ("content-disposition:form-data;name=model", "v"),
        ('CONTENT-DISPOSITION:   form-data;   NAME="model"  ', "v"),
        ('X-Other: 1\r\nContent-Disposition: form-data; name="model"\r\nContent-Type: text/plain', "v"),
        ('Content-Disposition: form-data; name="model"; filename="m.txt"', ""),
        ("Content-Disposition: form-data; name=\"model\"; filename*=utf-8''m.txt", ""),
        ('Content-Disposition: form-data; name="model"; filename', ""),
        ('Content-Disposition: form-data; x="a\\";b"; name="model"', "v"),
        ('Content-Disposition: form-data; x="; name=model', ""),
        ('Content-Disposition: form-data; name="model"; x="', "v"),
        ("X-Other: 1".ljust(MOST_PART_HEAD_BYTES) + '\r\nContent-Disposition: form-data; name="model"', ""),
        ('Content-Disposition: form-data; name="Model"', ""),
        ('Content-Disposition: form-data; x="name=model"', ""),
        ("Content-Disposition: form-data", ""),
        ("X-Other: 1", ""),
    ],
)
def test_a_part_is_known_by_its_name_and_is_no_file(head: str, found: str) -> None:
    assert multipart_field(TYPE, multipart((head, b"v")), "model") == found


def test_names_and_values_are_utf_8() -> None:
    body = multipart(field("größe", "ja"), field("model", "größe-7b"))

    assert multipart_field(TYPE, body, "model") == "größe-7b"
    assert multipart_field(TYPE, body, "größe") == "ja"


def test_a_value_may_hold_line_breaks_and_half_boundaries() -> None:
    value = "a\r\n--xy\r\n\r\nb"

    assert multipart_field(TYPE, multipart(field("x", value), field("model", value)), "model") == value


def test_what_stands_before_the_first_boundary_and_behind_the_last_is_no_part() -> None:
    body = b"preamble\r\n" + multipart(field("x", "1")) + multipart(field("model", "m1"))

    assert multipart_field(TYPE, body, "x") == "1"
    assert multipart_field(TYPE, body, "model") == ""


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data", multipart(field("model", "m1"))),
        ("multipart/form-data; boundary=", multipart(field("model", "m1"))),
        ("multipart/form-data; boundary=other", multipart(field("model", "m1"))),
        (TYPE, b""),
        (TYPE, b"--xyz"),
        (TYPE, b"--xyz--"),
        (TYPE, b"--xyz\r\n"),
        (TYPE, multipart(field("model", "m1"))[:-20]),
        (TYPE, b'--xyz\r\nContent-Disposition: form-data; name="model"\r\nm1\r\n--xyz--\r\n'),
        (TYPE, b"\r\n\r\n--xyz\r\n\r\nm1\r\n--xyz--"),
        ("multipart/form-data; boundary=\r\n", b"x"),
    ],
)
def test_a_form_that_cannot_be_read_names_nothing(content_type: str, body: bytes) -> None:
    assert multipart_field(content_type, body, "model") == ""


@given(st.text(max_size=60), st.binary(max_size=80))
def test_nothing_can_raise(content_type: str, body: bytes) -> None:
    multipart_field(f"multipart/form-data; {content_type}", body, "model")
    multipart_field(TYPE, b"--xyz\r\n" + body + b"\r\n--xyz--", "model")
    query_field(body, "model")
    form_field(body, "model")
