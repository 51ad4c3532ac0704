"""A model server without a model: answers what its callers ask for, and notes what became of them.

Run as a program, it stands in for llama-server:

    python stub_upstream.py --port N [--alias NAME] [--record FILE] [--load SECONDS] [--ignore-term]

A request says in its `X-Stub` field, as JSON, what it wants:

    first   seconds before the head of the answer
    tokens  so many server-sent events, the last one `[DONE]`; each tells when it was sent
    gap     seconds between them
    die     exit after so many of them
    fill    a plain body of so many bytes
    status  instead of 200

Without it, the answer is a JSON object that describes the request.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

USAGE = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request."""

    method: str
    target: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def wishes(self) -> dict[str, Any]:
        """What `X-Stub` says."""
        wishes: dict[str, Any] = json.loads(self.headers.get("x-stub", "{}"))
        return wishes


class Listener(asyncio.StreamReader):
    """What a client sends, and whether it has left: that can be awaited without reading its next request.

    It runs without packages, so nothing can be marked as an override.
    """

    def __init__(self) -> None:
        super().__init__(limit=1 << 20)
        self.left = asyncio.Event()

    def feed_eof(self) -> None:  # type: ignore[explicit-override]  # see above
        """The client sends nothing more."""
        super().feed_eof()
        self.left.set()

    def set_exception(self, exc: Exception) -> None:  # type: ignore[explicit-override]  # see above
        """The client has cut the connection."""
        super().set_exception(exc)
        self.left.set()


class Stub:
    """One server.

    Args:
        name: what it says it is.
        ready_at: when its health turns good, on the monotonic clock.
        record: where it notes what happens, one JSON object a line.
    """

    def __init__(self, name: str, ready_at: float, record: Path | None) -> None:
        self._name = name
        self._ready_at = ready_at
        self._record = record
        self._served = 0

    def connection(self) -> asyncio.StreamReaderProtocol:
        """What serves one connection."""
        listener = Listener()

        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self.serve(listener, writer)

        return asyncio.StreamReaderProtocol(listener, serve)

    async def serve(self, reader: Listener, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until its other end leaves."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._one(reader, writer):
                pass
        writer.close()

    async def _one(self, reader: Listener, writer: asyncio.StreamWriter) -> bool:
        asked = await read_request(reader)
        if asked.target == "/health":
            ready = time.monotonic() >= self._ready_at
            writer.write(whole(200 if ready else 503, b"{}"))
            return True
        tag = asked.headers.get("x-tag", "")
        self._served += 1
        number = f"{os.getpid()}-{self._served}"
        self._note("arrived", tag, request=number, target=asked.target)
        answering = asyncio.create_task(self._answer(asked, writer, number))
        leaving = asyncio.create_task(reader.left.wait())
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        left = not answering.done() or answering.exception() is not None
        if left:
            self._note("left", tag, request=number)
        (answering if left else leaving).cancel()
        return not left

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter, number: str) -> None:
        """Answer; the end is noted before it is sent, for whoever has it may stop us at once."""
        wishes = asked.wishes
        await asyncio.sleep(wishes.get("first", 0))
        if "tokens" in wishes:
            await stream(writer, wishes)
            last = b"0\r\n\r\n"
        else:
            last = self._whole(asked)
        self._note("answered", asked.headers.get("x-tag", ""), request=number)
        writer.write(last)
        await writer.drain()

    def _whole(self, asked: Asked) -> bytes:
        wishes = asked.wishes
        status = wishes.get("status", 200)
        if asked.method == "HEAD":
            return head(status, "application/json", "Content-Length: 2")
        if "fill" in wishes:
            return whole(status, bytes(wishes["fill"]))
        return whole(status, json.dumps(self._describe(asked)).encode())

    def _describe(self, asked: Asked) -> dict[str, Any]:
        digest = hashlib.sha256(asked.body).hexdigest()
        return {
            "model": self._name,
            "method": asked.method,
            "target": asked.target,
            "headers": dict(asked.headers),
            "size": len(asked.body),
            "sha256": digest,
            "usage": USAGE,
        }

    def _note(self, event: str, tag: str, **facts: Any) -> None:
        if self._record is not None:
            line = json.dumps(
                {"at": time.monotonic(), "model": self._name, "event": event, "tag": tag, **facts}
            )
            with self._record.open("a") as file:
                file.write(line + "\n")


async def read_request(reader: asyncio.StreamReader) -> Asked:
    """Read one request; IncompleteReadError when the other end leaves."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ", 2)
    pairs = [line.split(":", 1) for line in lines[1:] if line]
    headers = {name.lower(): value.strip() for name, value in pairs}
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = await read_chunks(reader)
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method=method, target=target, headers=headers, body=body)


async def read_chunks(reader: asyncio.StreamReader) -> bytes:
    """Read a chunked body."""
    body = b""
    while size := int((await reader.readline()).split(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readline()
    while (await reader.readline()).strip():
        pass
    return body


async def stream(writer: asyncio.StreamWriter, wishes: Mapping[str, Any]) -> None:
    """Send events, each as a chunk of its own; the last chunk is left to the caller."""
    writer.write(head(200, "text/event-stream", "Transfer-Encoding: chunked"))
    await writer.drain()
    for number in range(wishes["tokens"]):
        if number == wishes.get("die"):
            sys.stderr.write("stub: fatal error, as asked for\n")
            sys.stderr.flush()
            os._exit(13)
        if number:
            await asyncio.sleep(wishes.get("gap", 0))
        event = {"n": number, "sent": time.monotonic(), "choices": [{"delta": {"content": f"{number} "}}]}
        write_chunk(writer, b"data: " + json.dumps(event).encode() + b"\n\n")
        await writer.drain()
    write_chunk(writer, b"data: " + json.dumps({"choices": [], "usage": USAGE}).encode() + b"\n\n")
    write_chunk(writer, b"data: [DONE]\n\n")


def write_chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write one chunk of a chunked body."""
    writer.write(b"%x\r\n%b\r\n" % (len(data), data))


def whole(status: int, body: bytes) -> bytes:
    """A whole answer."""
    return head(status, "application/json", f"Content-Length: {len(body)}") + body


def head(status: int, content_type: str, framing: str) -> bytes:
    """The head of an answer."""
    return f"HTTP/1.1 {status} Stub\r\nContent-Type: {content_type}\r\n{framing}\r\n\r\n".encode()


async def run(port: int, stub: Stub) -> None:
    """Listen until killed."""
    server = await asyncio.get_running_loop().create_server(stub.connection, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--alias", default="stub")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--load", type=float, default=0.0)
    parser.add_argument("--ignore-term", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.SIG_IGN if options.ignore_term else lambda *_: os._exit(0))
    print(f"stub {options.alias} listens on {options.port}", flush=True)  # noqa: T201 - its log
    asyncio.run(run(options.port, Stub(options.alias, time.monotonic() + options.load, options.record)))


if __name__ == "__main__":
    main()
