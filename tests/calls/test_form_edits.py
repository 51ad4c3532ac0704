"""Single form fields, replaced."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.calls.form_edits import set_multipart_field, set_query_field
from llamaswap.calls.forms import MOST_PARTS, multipart_field

TYPE = "multipart/form-data; boundary=BOUND"
FORM = (
    b"preamble\r\n--BOUND\r\n"
    b'Content-Disposition: form-data; name="file"; filename="a b.wav"\r\nContent-Type: audio/wav\r\n\r\n'
    b"RIFF\x00\x01data\r\n\r\n\r\n--BOUND\r\n"
    b'Content-Disposition: form-data; name="model"\r\nX-Part: 1\r\n\r\npublic\r\n--BOUND  \r\n'
    b'content-disposition: form-data; name=model; filename="model"\r\n\r\npublic\r\n--BOUND\r\n'
    b'Content-Disposition: form-data; name="model"\r\n\r\n\r\n--BOUND--\r\nepilogue'
)


@pytest.mark.parametrize(
    ("query", "after"),
    [
        (b"z=1&model=public&a=%20b", b"a=+b&model=m1&z=1"),
        (b"model=public", b"model=m1"),
        (b"b=2&b=1&model=x&model=y&b=0", b"b=2&b=1&b=0&model=m1"),
        (b"a&=1&&model=public", b"=1&a=&model=m1"),
        (b"k=a~-._b%2f%C3%A9+%26", b"k=a~-._b%2F%C3%A9+%26&model=m1"),
        (b"bad=%zz&c;d=1&model=public", b"model=m1"),
        (b"", b"model=m1"),
    ],
)
def test_a_query_is_encoded_anew_with_its_keys_sorted(query: bytes, after: bytes) -> None:
    assert set_query_field(query, "model", "m1") == after


def test_a_name_is_escaped_in_a_query() -> None:
    assert set_query_field(b"model=x", "model", "org/m é&") == b"model=org%2Fm+%C3%A9%26"


@given(st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4)), max_size=5), st.text(max_size=5))
def test_the_other_fields_of_a_query_keep_their_values(pairs: list[tuple[str, str]], name: str) -> None:
    after = set_query_field(urlencode(pairs).encode(), "model", name)

    others = sorted((pair for pair in pairs if pair[0] != "model"), key=lambda pair: pair[0].encode())
    found = parse_qsl(after.decode(), keep_blank_values=True)
    assert [pair for pair in found if pair[0] != "model"] == others
    assert ("model", name) in found


def test_every_value_of_a_multipart_field_is_replaced_and_nothing_else() -> None:
    after = set_multipart_field(TYPE, FORM, "model", "org/é")

    wanted = FORM.replace(b"X-Part: 1\r\n\r\npublic", "X-Part: 1\r\n\r\norg/é".encode())
    wanted = wanted.replace(b"\r\n\r\n\r\n--BOUND--", "\r\n\r\norg/é\r\n--BOUND--".encode())
    assert after == wanted
    assert multipart_field(TYPE, after, "model") == "org/é"


@pytest.mark.parametrize(
    ("kind", "name"),
    [(TYPE, "other"), (TYPE, "file"), ("multipart/form-data", "model"), (TYPE + "X", "model")],
)
def test_a_form_without_the_field_is_the_very_same(kind: str, name: str) -> None:
    assert set_multipart_field(kind, FORM, name, "m1") is FORM


def test_only_so_many_parts_are_looked_at() -> None:
    def form(parts: int) -> bytes:
        part = b"--BOUND\r\nContent-Disposition: form-data; name=%b\r\n\r\npublic\r\n"
        return part % b"x" * (parts - 1) + part % b"model" + b"--BOUND--\r\n"

    last, beyond = form(MOST_PARTS), form(MOST_PARTS + 1)
    assert set_multipart_field(TYPE, last, "model", "m1") == last.replace(
        b"model\r\n\r\npublic", b"model\r\n\r\nm1"
    )
    assert set_multipart_field(TYPE, beyond, "model", "m1") is beyond
