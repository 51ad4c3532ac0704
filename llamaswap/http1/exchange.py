"""One request and its response, as the code that answers it sees them.

Knows how a response is put on a connection; not how requests come off it, nor
when the next one may start: that is the connection's part
(`llamaswap.http1.connection`), reached through `Line`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from llamaswap.errands import Errand
from llamaswap.http1.body import Body, Intake
from llamaswap.http1.heads import RequestHead, has_no_body
from llamaswap.http1.outlet import Outlet
from llamaswap.http1.stream import ResponseStream
from llamaswap.http1.writing import CONTINUE, format_lines, status_line, usual_reason

NO_NAMES: Final = frozenset[bytes]()


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

    def handled(self, exchange: Exchange, error: BaseException | None) -> None:
        """The handler of an exchange is over, well (None) or not."""

    def abort(self) -> None:
        """Cut the connection, whatever is still on its way."""

    def expect_progress(self) -> None:
        """From now on cut a client that takes nothing of its response for long."""

    def expect_nothing(self) -> None:
        """The client has taken enough: leave it alone again."""

    def take_over(self, tunnel: Tunnel) -> None:
        """From now on the connection carries the tunnel's bytes."""


class Exchange:
    """One request and its response."""

    _log = Logger()

    __slots__ = (
        "_continue_due",
        "_keep_alive",
        "_line",
        "_on_gone",
        "_waiting",
        "body_bytes",
        "client_host",
        "errand",
        "finished",
        "gone",
        "head",
        "intake",
        "on_drain",
        "on_end",
        "outlet",
        "own_lines",
        "own_names",
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
        self.on_end: Callable[[Exchange], None] | None = None  # called once, when it is over or lost
        self.errand: Errand | None = None  # the handler
        self.own_lines = b""  # fields that any head of the response gets, each with its line end
        self.own_names: frozenset[bytes] = NO_NAMES  # of these, in lower case; an upstream's own give way
        self._line = line
        self.outlet = line.outlet
        self._keep_alive = head.kin.keep_alive
        self._continue_due = head.kin.expects_continue
        self._waiting: Deferred[None] | None = None
        self._on_gone: Callable[[], None] | None = None

    @property
    def buffered(self) -> int:
        """Bytes of the response that the kernel has not taken yet."""
        return self.outlet.buffered

    def body_at_hand(self) -> Body | None:
        """The whole request body if it is here, as most are with their head; saves the wait of `body`."""
        return self.intake.body() if self.intake.complete else None

    async def body(self) -> Body:
        """The whole request body; tells a client that waits for it to go ahead.

        Raises:
            ClientGone: the client left, or broke its own framing, before the body was complete.
        """
        if not self.intake.complete:
            if self.gone:
                raise ClientGone
            if self.awaits_continue and not self.started:
                self.outlet.write(CONTINUE)
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
        head = self._begin(status, fields)
        if bodyless or not body or self.head.method == b"HEAD":
            self.write(head)
        else:
            self.body_bytes = len(body)
            self.write_all((head, body))
        self.finish()

    def stream(
        self,
        status: int,
        headers: Iterable[tuple[bytes, bytes]] = (),
        *,
        kind: type[ResponseStream] = ResponseStream,
    ) -> ResponseStream:
        """Start a response of unknown length; it may outlive the handler.

        Args:
            kind: what is returned.

        Raises:
            RuntimeError: a response has been started already.
        """
        fields = list(headers)
        silent = has_no_body(status) or self.head.method == b"HEAD"
        chunked = self.head.version == (1, 1) and not has_no_body(status)
        if chunked:
            fields.append((b"Transfer-Encoding", b"chunked"))
        self.write(self._begin(status, fields, close=not chunked and not silent))
        return kind(self, chunked=chunked, silent=silent)

    def interim(self, head: bytes) -> None:
        """Send a formatted 1xx head ahead of the response; HTTP/1.0 clients know none."""
        if self.head.version == (1, 1) and not self.started:
            self.write(head)

    def begin(self, status: int, lines: bytes, *, dated: bool, close: bool = False) -> bytes:
        """Mark the response as started; the head returned is the caller's to `write`.

        Args:
            lines: `writing.format_lines` of all of the head but Connection and `own_lines`.
            dated: a Date is among them; otherwise it is added.
            close: the end of the connection is the end of the body.

        Raises:
            RuntimeError: a response has been started already.
        """
        if self.started:
            raise RuntimeError("this exchange has been answered already")
        if not dated:
            lines += b"Date: %b\r\n" % self._line.date()
        if self.own_lines:
            lines += self.own_lines
        if status >= 200:
            self._keep_alive = self._keep_alive and self.intake.complete and not close
            if not self._keep_alive or self._line.closing():
                self._keep_alive = False
                lines += b"Connection: close\r\n"
            elif self.head.version == (1, 0):
                lines += b"Connection: keep-alive\r\n"
        self.started = True
        self.status = status
        return lines + b"\r\n"

    def _begin(self, status: int, fields: list[tuple[bytes, bytes]], *, close: bool = False) -> bytes:
        dated = any(name.lower() == b"date" for name, _ in fields)
        lines = format_lines(status_line(status, usual_reason(status)), fields)
        return self.begin(status, lines, dated=dated, close=close)

    def cancel(self) -> None:
        """Cancel whoever answers: what its coroutine waits for, or will wait for next."""
        if self.errand is not None:
            self.errand.cancel()

    @property
    def keep_alive(self) -> bool:
        """Whether the connection may carry another exchange after this one."""
        return self._keep_alive

    def write(self, data: bytes) -> None:
        """Put bytes of the response on the wire as they are."""
        if not self.gone and not self.finished:
            self.outlet.write(data)

    def write_all(self, pieces: Sequence[bytes]) -> None:
        """`write` for several pieces."""
        if not self.gone and not self.finished:
            self.outlet.write_all(pieces)

    def finish(self) -> None:
        """The response is complete; the next request may start now, within this call."""
        if not self.finished:
            self.finished = True
            if self.on_end is not None:
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

    def hold_up(self) -> None:
        """Somebody waits for the client to take more, until `go_on`: one that takes nothing is cut."""
        if not self.gone and not self.finished:
            self._line.expect_progress()

    def go_on(self) -> None:
        """The client has taken enough for now."""
        if not self.gone and not self.finished:
            self._line.expect_nothing()

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
        if callback is None:
            return
        try:
            callback(self)
        except Exception:  # noqa: BLE001 - the connection, and who waits for the upstream, must go on
            self._log.failure("http.listener_failed target={target}", target=self.head.target)

    def handled(self, error: BaseException | None) -> None:
        """The handler is over; called by its errand."""
        self._line.handled(self, error)

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
