"""A model server that writes its answers in odd pieces, and speaks WebSocket where asked to upgrade.

Run as a program:

    python real_odd_upstream.py --port N --alias NAME

A request says in its `X-Odd` field, as JSON, how it is answered:

    file    the path of the file that is the body
    sizes   how large each write is, over and over
    framing chunked (each write a chunk), length or close
    type    the content type
    fields  more header fields

An upgrade is answered, and what comes is echoed: text for text, bytes for bytes, until "bye".
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import itertools
import json
import os
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one connection."""
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        while await one(reader, writer):
            pass
    writer.close()


async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Answer one request; returns whether another may follow."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = [line.split(":", 1) for line in lines[1:] if line]
    fields = {name.lower(): value.strip() for name, value in pairs}
    await reader.readexactly(int(fields.get("content-length", "0")))
    if "upgrade" in fields:
        await echo(reader, writer, fields)
        return False
    odd = json.loads(fields.get("x-odd", "{}"))
    if "file" in odd:
        return await answer_oddly(writer, odd, read(odd["file"]))
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
    await writer.drain()
    return True


def read(path: str) -> bytes:
    """Read a file."""
    return Path(path).read_bytes()


async def answer_oddly(writer: asyncio.StreamWriter, odd: Mapping[str, Any], body: bytes) -> bool:
    """Send a body, piece by piece."""
    framing: str = odd.get("framing", "chunked")
    how = {"chunked": "Transfer-Encoding: chunked", "length": f"Content-Length: {len(body)}"}
    head = ["HTTP/1.1 200 OK", f"Content-Type: {odd.get('type', 'text/event-stream')}"]
    head += [how.get(framing, "Connection: close"), *odd.get("fields", [])]
    writer.write("\r\n".join([*head, "", ""]).encode())
    at = 0
    for size in itertools.cycle(odd["sizes"]):
        piece = body[at : at + size]
        if not piece:
            break
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if framing == "chunked" else piece)
        await writer.drain()
        at += size
        if size < 64:
            await asyncio.sleep(0)
    writer.write(b"0\r\n\r\n" if framing == "chunked" else b"")
    await writer.drain()
    return framing != "close"


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fields: Mapping[str, str]) -> None:
    """Accept a WebSocket and send back what it sends."""
    key = fields["sec-websocket-key"].encode()
    accept = base64.b64encode(hashlib.sha1(key + GUID, usedforsecurity=False).digest()).decode()
    head = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
    head += [f"Sec-WebSocket-Accept: {accept}"]
    if wanted := fields.get("sec-websocket-protocol"):
        head.append(f"Sec-WebSocket-Protocol: {wanted.split(',')[0].strip()}")
    writer.write("\r\n".join([*head, "", ""]).encode())
    while True:
        first, payload = await read_frame(reader)
        code = first & 0x0F
        if code == 8 or payload == b"bye":
            writer.write(frame(0x88, payload[:2] if code == 8 else b"\x03\xe8"))
            await writer.drain()
            return
        writer.write(frame(0x8A if code == 9 else first, payload))
        await writer.drain()


async def read_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Read one masked frame: its first byte, and its payload."""
    first, size = await reader.readexactly(2)
    size &= 0x7F
    if size > 125:
        size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8))
    mask = await reader.readexactly(4)
    payload = await reader.readexactly(size)
    repeated = (mask * (size // 4 + 1))[:size]
    return first, (int.from_bytes(payload) ^ int.from_bytes(repeated)).to_bytes(size)


def frame(first: int, payload: bytes) -> bytes:
    """One frame as a server sends it."""
    size = len(payload)
    if size < 126:
        return bytes((first, size)) + payload
    if size < 1 << 16:
        return bytes((first, 126)) + size.to_bytes(2) + payload
    return bytes((first, 127)) + size.to_bytes(8) + payload


async def run(port: int) -> None:
    """Listen until killed."""
    server = await asyncio.start_server(serve, "127.0.0.1", port, limit=1 << 24)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--alias", default="odd")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    asyncio.run(run(options.port))


if __name__ == "__main__":
    main()
