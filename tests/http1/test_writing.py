"""Heads as bytes."""

from __future__ import annotations

import pytest

from llamaswap.http1.writing import format_around_length, format_lines, format_response, request_line


def test_heads_are_written_in_order_and_case() -> None:
    fields = [(b"hOST", b"h"), (b"X-Empty", b"")]

    asked = format_lines(request_line(b"GET", b"/x?y"), fields)
    assert asked == b"GET /x?y HTTP/1.1\r\nhOST: h\r\nX-Empty: \r\n"
    assert format_response(404, ()) == b"HTTP/1.1 404 Not Found\r\n\r\n"
    assert format_response(200, (), reason=b"Fine") == b"HTTP/1.1 200 Fine\r\n\r\n"
    assert format_response(299, ()) == b"HTTP/1.1 299 \r\n\r\n"


@pytest.mark.parametrize("length", [b"0", b"17"])
def test_a_head_can_be_written_around_its_length(length: bytes) -> None:
    fields = [(b"A", length), (b"cOntent-Length", length), (b"b", b"2")]

    before, after = format_around_length(b"GET / HTTP/1.1", fields)

    assert before == b"GET / HTTP/1.1\r\nA: " + length + b"\r\ncOntent-Length: "
    assert after == b"\r\nb: 2\r\n"
    assert format_around_length(b"X", fields[:1]) == (b"X\r\nA: " + length + b"\r\n", None)


@pytest.mark.parametrize("value", [b"a\r\nSet-Cookie: x", b"a\nb", b"a\rb", b"a\0b"])
def test_no_value_can_smuggle_in_a_line(value: bytes) -> None:
    with pytest.raises(ValueError):
        format_response(307, [(b"Location", value)])
    with pytest.raises(ValueError):
        format_lines(request_line(b"GET", b"/"), [(b"X", value)])
    with pytest.raises(ValueError):
        format_lines(request_line(b"GET", b"/" + value), [])


def test_a_target_with_a_blank_is_no_target() -> None:
    with pytest.raises(ValueError):
        request_line(b"GET", b"/a b")
