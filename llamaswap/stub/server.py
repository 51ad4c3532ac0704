"""Serve: a thread for each connection, and each answer at its pace.

Knows when something is sent, and notes what became of it; what is sent is
`answers`' business.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

from llamaswap.stub import answers, events, replies, websocket
from llamaswap.stub.life import Mortality
from llamaswap.stub.options import Manner, Options
from llamaswap.stub.records import Record
from llamaswap.stub.texts import digest
from llamaswap.stub.wire import Left, Request, Wire

STACK_BYTES = 256 * 1024  # of each thread: there may be hundreds
BACKLOG = 1024


class Server:
    """One process's answers.

    Args:
        began: its start, on the monotonic clock.
    """

    def __init__(self, options: Options, record: Record, mortality: Mortality, began: float) -> None:
        self._options = options
        self._record = record
        self._mortality = mortality
        self._ready_at = began + options.health.load

    def listen(self) -> socket.socket:
        """Bind; `::` takes both families, `localhost` is what the resolver says."""
        host, port = self._options.host, self._options.port
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=BACKLOG, dualstack_ipv6=host == "::")

    def serve(self, door: socket.socket) -> None:
        """Accept for ever."""
        threading.stack_size(STACK_BYTES)
        while True:
            connection, _ = door.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._talk, args=(Wire(connection),), daemon=True).start()

    def _talk(self, wire: Wire) -> None:
        with suppress(Left):
            while self._one(wire):
                pass
        wire.close()

    def _one(self, wire: Wire) -> bool:
        """Answer one request; returns whether another may follow."""
        request = wire.read()
        if request.path == answers.HEALTH:
            wire.rest(self._options.health.lag)
        ready = time.monotonic() >= self._ready_at
        reply = answers.at_the_door(request, self._options, ready=ready)
        if reply is not None and request.path == answers.HEALTH:
            wire.send(_whole(request, reply))
            return request.stays
        visit = Visit(request, wire, self._options, self._record, self._mortality)
        return visit.answer(reply)


class Visit:
    """One request, from its arrival to its line in the record."""

    def __init__(
        self, request: Request, wire: Wire, options: Options, record: Record, mortality: Mortality
    ) -> None:
        self._request = request
        self._wire = wire
        self._options = options
        self._record = record
        self._mortality = mortality
        self._began = time.monotonic()
        self._noted = False

    def answer(self, reply: replies.Reply | None) -> bool:
        """Answer, with this if it is one already; returns whether another request may follow.

        Raises:
            Left: the client has gone before the end.
        """
        self._record.note("arrived", **self._facts())
        try:
            if reply is not None:
                return self._send(_whole(self._request, reply))
            return self._at_length()
        except Left:
            self._note(left=True)
            raise

    def _at_length(self) -> bool:
        if websocket.is_wanted(self._request):
            websocket.echo(self._wire, self._request)
            self._note(left=False)
            return False
        try:
            manner = answers.manner_of(self._request, self._options)
        except ValueError as error:
            return self._send(_whole(self._request, answers.refusal(400, str(error))))
        self._wire.rest(None if manner.hang else manner.first)
        stream = answers.stream(self._request, self._options.alias, manner)
        if stream is not None:
            return self._stream(stream, manner)
        self._wire.rest(manner.gap * max(0, manner.tokens - 1))
        return self._in_pieces(answers.whole(self._request, self._options.alias, manner), manner)

    def _send(self, last: bytes) -> bool:
        """Send the end of an answer, which is noted first: who has it may end us at once."""
        self._wire.look()
        self._note(left=False)
        self._wire.send(last)
        return self._request.stays

    def _in_pieces(self, reply: replies.Reply, manner: Manner) -> bool:
        framing = manner.framing or "length"
        head = replies.framed(reply, framing)
        if self._request.method == "HEAD":
            return self._send(head)
        if not manner.sizes:
            body = replies.chunk(reply.body) + replies.LAST_CHUNK if framing == "chunked" else reply.body
            return self._send(head + body) and framing != "close"
        self._wire.send(head)
        for piece in events.pieces(reply.body, manner.sizes):
            self._wire.send(replies.chunk(piece) if framing == "chunked" else piece)
        return self._send(replies.LAST_CHUNK if framing == "chunked" else b"") and framing != "close"

    def _stream(self, stream: Iterator[events.Event], manner: Manner) -> bool:
        """Send events as chunks; the last chunk is the end."""
        packs = manner.gzip and "gzip" in self._request.get("accept-encoding")
        packer = replies.Packer() if packs else None
        self._wire.send(_stream_head(manner, packs=packs))
        for number in range(manner.comments):
            self._write(b": comment %d\n\n" % number, manner, packer)
        for event in stream:
            if event.token is not None and not self._goes_on(event.token, manner, packer):
                break
            self._write(event.encode(manner, time.monotonic() if manner.stamp else None), manner, packer)
        end = replies.chunk(packer.end()) if packer is not None else b""
        return self._send(end + replies.LAST_CHUNK)

    def _goes_on(self, token: int, manner: Manner, packer: replies.Packer | None) -> bool:
        """Wait for a token's turn; returns whether it is sent."""
        self._wire.rest(manner.gap if token else 0.0)
        if token == manner.die_on:
            self._mortality.die()
        if token in (manner.drop_at, manner.reset_at):
            self._note(left=False, broken_off=True)
            (self._wire.reset if token == manner.reset_at else self._wire.close)()
            raise Left
        if token == manner.error_at:
            event = events.error_event(self._request.path, "as asked for")
            self._write(event.encode(manner), manner, packer)
            return False
        return True

    def _write(self, data: bytes, manner: Manner, packer: replies.Packer | None) -> None:
        data = data if packer is None else packer.pack(data)
        for piece in events.pieces(data, manner.sizes or (events.ODD_SIZES if manner.split else ())):
            self._wire.send(replies.chunk(piece))

    def _facts(self) -> dict[str, object]:
        request = self._request
        return {
            "method": request.method,
            "path": request.path,
            "target": request.target,
            "headers": request.headers,
            "tag": request.get("x-tag"),
            "model": answers.model_of(request, ""),
            "size_bytes": len(request.body),
            "sha256": digest(request.body),
            "stopping": self._mortality.leaving,
        }

    def _note(self, **facts: object) -> None:
        if not self._noted:
            self._noted = True
            self._record.note("request", **self._facts(), arrived=self._began, **facts)


def _whole(request: Request, reply: replies.Reply) -> bytes:
    return replies.framed(reply, "length") + (b"" if request.method == "HEAD" else reply.body)


def _stream_head(manner: Manner, *, packs: bool) -> bytes:
    fields = [("Content-Type", replies.EVENTS), ("Transfer-Encoding", "chunked")]
    fields += [("Content-Encoding", "gzip")] if packs else []
    fields += [("Access-Control-Allow-Origin", manner.cors)] if manner.cors is not None else []
    return replies.head(200, (*fields, *manner.headers))
