"""A WebSocket that sends back what it gets, until a message says `bye`.

Knows frames as far as browsers send them; nothing of models.
"""

from __future__ import annotations

import base64
import hashlib

from llamaswap.stub import replies
from llamaswap.stub.wire import Request, Wire

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3
CLOSE, PING = 8, 9
FIN_CLOSE, FIN_PONG = 0x88, 0x8A
NORMAL = b"\x03\xe8"  # 1000


def is_wanted(request: Request) -> bool:
    """Whether a request asks for one."""
    return request.get("upgrade").lower() == "websocket"


def acceptance(request: Request) -> bytes:
    """The head that grants it, with the first protocol that was offered."""
    key = request.get("sec-websocket-key").encode()
    accept = base64.b64encode(hashlib.sha1(key + GUID, usedforsecurity=False).digest()).decode()
    fields = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept)]
    if offered := request.get("sec-websocket-protocol"):
        fields.append(("Sec-WebSocket-Protocol", offered.split(",")[0].strip()))
    return replies.head(101, fields)


def echo(wire: Wire, request: Request) -> None:
    """Accept, and send back what comes."""
    wire.send(acceptance(request))
    while True:
        first, payload = _read(wire)
        code = first & 0x0F
        if code == CLOSE or payload == b"bye":
            wire.send(frame(FIN_CLOSE, payload[:2] if code == CLOSE else NORMAL))
            return
        wire.send(frame(FIN_PONG if code == PING else first, payload))


def frame(first: int, payload: bytes) -> bytes:
    """One frame as a server sends it: unmasked."""
    size = len(payload)
    if size < 126:
        return bytes((first, size)) + payload
    if size < 1 << 16:
        return bytes((first, 126)) + size.to_bytes(2) + payload
    return bytes((first, 127)) + size.to_bytes(8) + payload


def unmasked(mask: bytes, payload: bytes) -> bytes:
    """A payload without its mask."""
    repeated = (mask * (len(payload) // 4 + 1))[: len(payload)]
    return (int.from_bytes(payload) ^ int.from_bytes(repeated)).to_bytes(len(payload))


def _read(wire: Wire) -> tuple[int, bytes]:
    """Its first byte, and its payload."""
    first, size = wire.take(2)
    size &= 0x7F
    if size > 125:
        size = int.from_bytes(wire.take(2 if size == 126 else 8))
    mask = wire.take(4)
    return first, unmasked(mask, wire.take(size))
