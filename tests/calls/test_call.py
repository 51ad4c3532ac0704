"""Where the model of a call is looked for."""

from __future__ import annotations

import pytest

from llamaswap.calls.call import Call, read_call
from llamaswap.errors import NoModel

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=x"


def part(name: str, value: str) -> bytes:
    """A multipart form of one field."""
    return f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n--x--'.encode()


@pytest.mark.parametrize(
    ("method", "query", "content_type", "body", "call"),
    [
        (b"GET", b"model=m1", "", b"", Call("m1", False)),
        (b"GET", b"model=m1&stream=true", "", b"", Call("m1", True)),
        (b"GET", b"model=m1&stream=1", "", b"", Call("m1", False)),
        (b"HEAD", b"model=m1", "", b"", Call("m1", False)),
        (b"GET", b"model=m1", JSON, b'{"model":"body"}', Call("m1", False)),
        (b"POST", None, JSON, b'{"model":"m1","stream":true}', Call("m1", True)),
        (b"POST", None, "application/json; charset=utf-8", b'{"model":"m1"}', Call("m1", False)),
        (b"POST", b"model=query", JSON, b'{"model":"m1"}', Call("m1", False)),
        (b"POST", None, MULTIPART, part("model", "m1"), Call("m1", False)),
        (b"POST", b"model=query", MULTIPART, part("model", "m1"), Call("query", False)),
        (b"POST", b"model=query", MULTIPART, part("stream", "true"), Call("query", True)),
        (b"POST", b"model=query", MULTIPART, b"nonsense", Call("query", False)),
        (b"POST", None, FORM, b"model=m1&stream=true", Call("m1", True)),
        (b"POST", b"model=query", FORM, b"model=m1", Call("m1", False)),
        (b"POST", b"model=query", FORM, b"x=1", Call("query", False)),
        (b"POST", b"model=query&stream=true", "text/plain", b'{"model":"m1"}', Call("query", True)),
        (b"POST", b"model=query", "", b"", Call("query", False)),
        (b"PUT", None, JSON, b'{"model":"m1"}', Call("m1", False)),
    ],
)
def test_a_model_is_found_where_llama_swap_finds_it(
    method: bytes, query: bytes | None, content_type: str, body: bytes, call: Call
) -> None:
    assert read_call(method, query, content_type, body) == call


@pytest.mark.parametrize(
    ("method", "query", "content_type", "body"),
    [
        (b"GET", None, "", b""),
        (b"GET", None, JSON, b'{"model":"m1"}'),
        (b"GET", b"model=m1;x", "", b""),
        (b"POST", b"model=query", JSON, b"{}"),
        (b"POST", None, JSON, b'{"model":""}'),
        (b"POST", None, "Application/JSON", b'{"model":"m1"}'),
        (b"POST", None, FORM, b'{"model":"m1"}'),
        (b"POST", None, FORM, b"x=%zz&model=m1"),
        (b"POST", b"model=query", FORM, b"x=%zz"),
        (b"POST", None, "text/plain", b"model=m1"),
        (b"POST", None, MULTIPART, part("other", "m1")),
        (b"POST", None, JSON, b"\x1f\x8b\x08compressed"),
    ],
)
def test_a_call_without_a_model_is_refused(
    method: bytes, query: bytes | None, content_type: str, body: bytes
) -> None:
    with pytest.raises(NoModel):
        read_call(method, query, content_type, body)
