"""Answers as bytes."""

from __future__ import annotations

import gzip
import json
import zlib

import pytest

from llamaswap.stub.replies import Packer, Reply, chunk, framed, head, of_json, packed


def test_a_head_tells_its_status_even_an_odd_one() -> None:
    assert head(404, [("A", "b")]) == b"HTTP/1.1 404 Not Found\r\nA: b\r\n\r\n"
    assert head(599, []).startswith(b"HTTP/1.1 599 Stub\r\n")


@pytest.mark.parametrize(
    ("framing", "field"),
    [
        ("length", b"Content-Length: 2"),
        ("chunked", b"Transfer-Encoding: chunked"),
        ("close", b"Connection: close"),
    ],
)
def test_an_answer_has_the_frame_that_was_asked_for(framing: str, field: bytes) -> None:
    assert field + b"\r\n" in framed(Reply(body=b"{}"), framing)


def test_json_is_whole_and_in_utf_8() -> None:
    reply = of_json({"a": "ü"}, 503)

    assert reply.status == 503
    assert json.loads(reply.body.decode()) == {"a": "ü"}


def test_an_empty_chunk_would_end_the_body_and_is_none() -> None:
    assert chunk(b"") == b""
    assert chunk(b"x" * 16) == b"10\r\n" + b"x" * 16 + b"\r\n"


def test_a_packed_answer_says_so_and_is_the_same_each_time() -> None:
    reply = packed(Reply(body=b"text"))

    assert gzip.decompress(reply.body) == b"text"
    assert reply.headers == (("Content-Encoding", "gzip"),)
    assert packed(Reply(body=b"text")) == reply


def test_a_packed_stream_can_be_read_after_each_piece() -> None:
    packer, reader = Packer(), zlib.decompressobj(wbits=31)

    assert reader.decompress(packer.pack(b"one")) == b"one"
    assert reader.decompress(packer.pack(b"two") + packer.end()) == b"two"
    assert reader.eof
