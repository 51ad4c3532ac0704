"""One request and its response, as the code that answers it sees them.

Knows how a response is put on a connection; not how requests come off it, nor
when the next one may start: that is the connection's part
(`llamaswap.http1.server`), reached through `Line`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from twisted.internet.defer import Deferred

from llamaswap.http1.body import Body, Intake
from llamaswap.http1.heads import RequestHead, format_response, has_no_body
from llamaswap.http1.outlet import Outlet
from llamaswap.http1.stream import ResponseStream


class ClientGone(Exception):
    """The client left before its request was complete; nobody is there to be answered."""


class Tunnel(Protocol):
    """Takes what the client sends after an upgrade."""

    def client_data(self, data: bytes) -> None:
        """Bytes as they came."""


class Line(Protocol):
    """What an exchange needs of the connection it came on."""

    outlet: Outlet

    def date(self) -> bytes:
        """Now, as the Date field has it."""

    def closing(self) -> bool:
        """Whether the connection will not take another request."""

    def pause_reading(self) -> None:
        """Take nothing from the client until `resume_reading`."""

    def resume_reading(self) -> None:
        """Take what the client sends."""

    def ended(self, exchange: Exchange) -> None:
        """The response is complete; called once."""

    def abort(self) -> None:
        """Cut the connection, whatever is still on its way."""

    def expect_progress(self) -> None:
        """From now on cut a client that takes nothing of its response for long."""

    def take_over(self, tunnel: Tunnel) -> None:
        """From now on the connection carries the tunnel's bytes."""


class Exchange:
    """One request and its response."""

    __slots__ = (
        "_continue_due",
        "_keep_alive",
        "_line",
        "_on_gone",
        "_waiting",
        "body_bytes",
        "client_host",
        "finished",
        "gone",
        "head",
        "intake",
        "on_drain",
        "on_end",
        "received",
        "started",
        "status",
    )

    def __init__(
        self,
        line: Line,
        head: RequestHead,
        intake: Intake,
        *,
        client_host: str,
        received: float,
        keep_alive: bool,
        expects_continue: bool,
    ) -> None:
        self.head = head
        self.client_host = client_host  # text of the peer's IP address; empty on a UNIX socket
        self.received = received  # reactor.seconds() at which the head was complete
        self.started = False  # a response head has been sent
        self.status = 0  # of that head
        self.body_bytes = 0  # of the response without its framing, as far as they are known
        self.finished = False  # the response is complete, or was cut
        self.gone = False  # the client left before the response was complete
        self.intake = intake
        self.on_drain: Callable[[], object] | None = None  # called when `buffered` has shrunk
        self.on_end: Callable[[], None] | None = None  # called once, when the response is over or lost
        self._line = line
        self._keep_alive = keep_alive
        self._continue_due = expects_continue
        self._waiting: Deferred[None] | None = None
        self._on_gone: Callable[[], None] | None = None

    @property
    def buffered(self) -> int:
        """Bytes of the response that the kernel has not taken yet."""
        return self._line.outlet.buffered

    async def body(self) -> Body:
        """The whole request body; tells a client that waits for it to go ahead.

        Raises:
            ClientGone: the client left, or broke its own framing, before the body was complete.
        """
        if not self.intake.complete:
            if self.gone:
                raise ClientGone
            if self.awaits_continue and not self.started:
                self._line.outlet.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._continue_due = False
            self._waiting = Deferred(_client_gone)
            self._line.resume_reading()
            await self._waiting
        return self.intake.body()

    def respond(self, status: int, body: bytes = b"", *, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        """Send a whole response; quietly nothing when the client has left.

        Adds Content-Length, Date and what keep-alive needs.

        Raises:
            RuntimeError: a response has been started already.
        """
        fields = list(headers)
        bodyless = has_no_body(status)
        if not bodyless:
            fields.append((b"Content-Length", b"%d" % len(body)))
        head = self.begin(status, fields)
        if bodyless or not body or self.head.method == b"HEAD":
            self.write(head)
        else:
            self.body_bytes = len(body)
            self.write_all((head, body))
        self.finish()

    def stream(self, status: int, headers: Iterable[tuple[bytes, bytes]] = ()) -> ResponseStream:
        """Start a response of unknown length; it may outlive the handler.

        Raises:
            RuntimeError: a response has been started already.
        """
        fields = list(headers)
        silent = has_no_body(status) or self.head.method == b"HEAD"
        chunked = self.head.version == (1, 1) and not has_no_body(status)
        if chunked:
            fields.append((b"Transfer-Encoding", b"chunked"))
        self.write(self.begin(status, fields, close=not chunked and not silent))
        return ResponseStream(self, chunked=chunked, silent=silent)

    def interim(self, head: bytes) -> None:
        """Send a formatted 1xx head ahead of the response; HTTP/1.0 clients know none."""
        if self.head.version == (1, 1) and not self.started:
            self.write(head)

    def begin(
        self,
        status: int,
        fields: list[tuple[bytes, bytes]],
        *,
        reason: bytes | None = None,
        close: bool = False,
    ) -> bytes:
        """Mark the response as started; the head returned is the caller's to `write`.

        Args:
            fields: all of the head but Date (added where missing) and Connection.
            close: the end of the connection is the end of the body.

        Raises:
            RuntimeError: a response has been started already.
            ValueError: a field holds a line break.
        """
        if self.started:
            raise RuntimeError("this exchange has been answered already")
        if not any(name.lower() == b"date" for name, _ in fields):
            fields.append((b"Date", self._line.date()))
        if status >= 200:
            self._keep_alive = self._keep_alive and self.intake.complete and not close
            if not self._keep_alive or self._line.closing():
                self._keep_alive = False
                fields.append((b"Connection", b"close"))
            elif self.head.version == (1, 0):
                fields.append((b"Connection", b"keep-alive"))
        head = format_response(status, fields, reason=reason)
        self.started = True
        self.status = status
        return head

    @property
    def keep_alive(self) -> bool:
        """Whether the connection may carry another exchange after this one."""
        return self._keep_alive

    def write(self, data: bytes) -> None:
        """Put bytes of the response on the wire as they are."""
        if not self.gone and not self.finished:
            self._line.outlet.write(data)

    def write_all(self, pieces: Iterable[bytes]) -> None:
        """`write` for several pieces."""
        if not self.gone and not self.finished:
            self._line.outlet.write_all(tuple(pieces))

    def finish(self) -> None:
        """The response is complete; the next request may start now, within this call."""
        if not self.finished:
            self.finished = True
            self.over()
            if not self.gone:
                self._line.ended(self)

    def answer_rest(self, write_more: Callable[[], object]) -> None:
        """Nothing but the client's pace keeps the response from its end any more.

        Args:
            write_more: called whenever the client has taken something, until `finish`;
                a client that takes nothing for long is cut.
        """
        if not self.gone and not self.finished:
            self.on_drain = write_more
            self._line.expect_progress()

    def abort(self) -> None:
        """Cut the connection, so that nothing sent so far looks complete."""
        if not self.finished:
            self.finished = True
            self.over()
            if not self.gone:
                self._line.abort()

    def take_over(self, tunnel: Tunnel) -> None:
        """Leave HTTP behind: after a 101 the connection carries bytes both ways."""
        self._line.take_over(tunnel)

    def pause_reading(self) -> None:
        """Take nothing from an upgraded client until `resume_reading`."""
        self._line.pause_reading()

    def resume_reading(self) -> None:
        """Take what an upgraded client sends."""
        if not self.gone and not self.finished:
            self._line.resume_reading()

    def when_gone(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the client leaves before the response is complete.

        One per exchange; the last one counts. Called at once if it has left already.
        """
        if self.gone:
            callback()
        else:
            self._on_gone = callback

    def lost(self) -> None:
        """The client is gone; called by the connection."""
        self.gone = True
        callback, self._on_gone = self._on_gone, None
        if callback is not None:
            callback()
        self.stop_waiting()

    def over(self) -> None:
        """Nothing more will reach the client; the connection calls it for a client that left."""
        callback, self.on_end = self.on_end, None
        if callback is not None:
            callback()

    def body_complete(self) -> None:
        """Wake who waits for the body; called by the connection."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.callback(None)

    def stop_waiting(self) -> None:
        """Nothing more of the body will come; called by the connection."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.errback(ClientGone())

    @property
    def awaits_continue(self) -> bool:
        """Whether the client holds its body back until it is told to go ahead."""
        return self._continue_due and not self.intake.held_bytes

    @property
    def body_awaited(self) -> bool:
        """Whether somebody waits for the rest of the body."""
        return self._waiting is not None


def _client_gone(deferred: Deferred[None]) -> None:
    deferred.errback(ClientGone())
