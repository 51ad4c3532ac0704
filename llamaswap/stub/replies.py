"""Answers as bytes: heads, frames, packing.

Pure.  Knows HTTP/1.1, and nothing of what an answer says.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

JSON = "application/json; charset=utf-8"
EVENTS = "text/event-stream"
LAST_CHUNK = b"0\r\n\r\n"

Fields = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole answer."""

    status: int = 200
    body: bytes = b""
    type: str = JSON
    headers: Fields = ()


def of_json(facts: Any, status: int = 200) -> Reply:
    """An answer in JSON."""
    return Reply(status=status, body=json.dumps(facts, ensure_ascii=False).encode())


def head(status: int, fields: Iterable[tuple[str, str]]) -> bytes:
    """The head of an answer."""
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = "Stub"
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
    return f"HTTP/1.1 {status} {reason}\r\n{lines}\r\n".encode("latin-1")


def framed(reply: Reply, framing: str) -> bytes:
    """The head of a whole answer, in one of three frames: `length`, `chunked` or `close`."""
    how = {
        "length": ("Content-Length", str(len(reply.body))),
        "chunked": ("Transfer-Encoding", "chunked"),
        "close": ("Connection", "close"),
    }[framing]
    kind = (("Content-Type", reply.type),) if reply.type else ()
    return head(reply.status, (*kind, how, *reply.headers))


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; nothing for nothing, which would end it."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def packed(reply: Reply) -> Reply:
    """The same answer in gzip; the same bytes each time."""
    body = gzip.compress(reply.body, mtime=0)
    fields = (*reply.headers, ("Content-Encoding", "gzip"))
    return Reply(status=reply.status, body=body, type=reply.type, headers=fields)


class Packer:
    """A stream in gzip that can be read up to any moment: flushed after each piece."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(wbits=31)

    def pack(self, data: bytes) -> bytes:
        """The next piece."""
        return self._deflate.compress(data) + self._deflate.flush(zlib.Z_SYNC_FLUSH)

    def end(self) -> bytes:
        """What is left."""
        return self._deflate.flush()
