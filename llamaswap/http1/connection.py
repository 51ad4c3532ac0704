"""One client connection: bytes to exchanges, strictly one after the other.

Owns the connection's states and deadlines, and the coroutine that answers the
exchange in progress.  What an answer looks like is the exchange's affair; which
connections there are, the server's.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IAddress, IHalfCloseableProtocol
from twisted.internet.protocol import Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure
from typing_extensions import override
from zope.interface import implementer

from llamaswap.errands import Errand
from llamaswap.http1.body import Intake
from llamaswap.http1.deadline import Deadline
from llamaswap.http1.exchange import ClientGone, Exchange, Tunnel
from llamaswap.http1.framing import CHUNKED, LENGTH, NONE
from llamaswap.http1.halfclose import Lookout, Probe
from llamaswap.http1.heads import RequestHead
from llamaswap.http1.hosting import TEXT, Owner
from llamaswap.http1.outlet import Outlet, SocketOutlet, StreamTransport, open_outlet, set_tcp_options
from llamaswap.http1.parsing import HeadBuffer, Malformed
from llamaswap.http1.writing import format_response

# How long a client that was refused may go on sending before it is cut: closing
# with its bytes unread would reset the connection and take our answer with it.
LINGER_SECONDS = 1.0


class _State(Enum):
    OPEN = auto()  # takes requests
    TUNNEL = auto()  # upgraded: bytes both ways
    CLOSING = auto()  # takes nothing more; what was written is still sent


_OPEN: Final = _State.OPEN  # as in `framing`, for what is asked at every request
_TUNNEL: Final = _State.TUNNEL


@implementer(IHalfCloseableProtocol)
class ServerConnection(Protocol):
    """One client connection."""

    _log = Logger()

    transport: StreamTransport
    outlet: Outlet

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._limits = owner.limits
        self._state: _State = _OPEN
        self._heads = HeadBuffer(self._limits.head_bytes)
        self._deadline = Deadline(owner.clock, self._expired)
        self._exchange: Exchange | None = None  # the one in progress
        self._tunnel: Tunnel | None = None
        self._held = b""  # came behind the request in progress
        self._advancing = False
        self._reading_paused = False
        self._progress_due = False  # the response, or enough of it, is here; the client has to take it
        self._untaken = 0  # bytes that the client had still to take when it was last given time for it
        self._client_host = ""
        self._probe: Probe | None = None  # once the client has ended its side
        self._lookout: Lookout | None = None  # once a client that waited was not read from

    # What Twisted calls.

    @override
    def connectionMade(self) -> None:
        self.outlet = open_outlet(self.transport, self._drained)
        self._client_host = _host_text(self.transport.getPeer())
        set_tcp_options(self.transport)
        self._owner.opened(self)
        self._deadline.set(self._limits.idle_seconds)

    @override
    def dataReceived(self, data: bytes) -> None:
        exchange = self._exchange
        if self._state is not _OPEN:
            if self._tunnel is not None:
                self._tunnel.client_data(data)
        elif exchange is not None and not exchange.intake.complete:
            self._take_body(exchange, data)
        elif exchange is not None or self.outlet.buffered or self._held:
            self._hold(data)
        else:
            self._take_head(data)

    def readConnectionLost(self) -> None:
        """The client sends nothing more: it has left, or only waits for its answer."""
        exchange, outlet = self._exchange, self.outlet
        if exchange is None:
            self._close()
        elif isinstance(outlet, SocketOutlet) and self._may_wait(exchange):
            self._probe = Probe(outlet.handle, self._owner.clock, outlet.write, self._left)
            if not self._probe.start():
                self._left()
        else:
            self._left()

    def writeConnectionLost(self) -> None:
        """We have sent everything; `_linger` did that."""

    @override
    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._deadline.stop()
        if self._lookout is not None:
            self._lookout.stop()
        self.outlet.stopProducing()
        self._owner.closed(self)
        self._leave()
        self._tunnel = None

    # What the exchange calls (`exchange.Line`).

    def date(self) -> bytes:
        """Now, as the Date field has it."""
        return self._owner.date()

    def closing(self) -> bool:
        """Whether this connection ends with the exchange in progress; asked when its answer begins."""
        if self._probe is None:
            return self._owner.closing
        self._probe.stop()
        return True

    def ended(self, exchange: Exchange) -> None:
        """The response is complete: start the next request, or close."""
        self._exchange = None
        self._progress_due = False
        exchange.intake.give_back()
        if self._state is _TUNNEL:
            self._close()
        elif not exchange.keep_alive or self._owner.closing:
            if exchange.intake.complete:
                self._close()
            else:
                self._linger()
        else:
            if self.outlet.buffered:
                self._await_taking()
            else:
                self._deadline.set(self._limits.idle_seconds)
            if self._held or self._reading_paused:
                self._advance()

    def abort(self) -> None:
        """Cut the connection."""
        self._state = _State.CLOSING
        self._deadline.clear()
        self.outlet.stopProducing()
        self.transport.abortConnection()

    def expect_progress(self) -> None:
        """From now on cut a client that takes nothing of its response for long."""
        self._progress_due = True
        self._await_taking()

    def expect_nothing(self) -> None:
        """The client has taken enough: leave it alone again."""
        self._progress_due = False
        self._deadline.clear()

    def take_over(self, tunnel: Tunnel) -> None:
        """Hand the connection's bytes to `tunnel` from now on, with those that came already."""
        self._state = _State.TUNNEL
        self._tunnel = tunnel
        held, self._held = self._held, b""
        self.resume_reading()
        if held:
            tunnel.client_data(held)

    def pause_reading(self) -> None:
        """Take nothing from the client until `resume_reading`."""
        if not self._reading_paused:
            self._reading_paused = True
            self.transport.pauseProducing()
            self._await_body()
            if self._state is _TUNNEL:
                self._look_after()

    def resume_reading(self) -> None:
        """Take what the client sends, unless too much of it waits already."""
        if self._reading_paused and len(self._held) <= self._limits.pipeline_bytes:
            self._reading_paused = False
            self.transport.resumeProducing()
        self._await_body()

    # What its owner calls.

    @property
    def untaken(self) -> int:
        """Bytes of an answer that is complete here, and not with the client yet."""
        return self.outlet.untaken if self._exchange is None or self._progress_due else 0

    def close_when_idle(self) -> None:
        """Close now if nothing is under way; otherwise the end of the exchange does it."""
        if self._exchange is None and self._state is _OPEN and not self._heads.begun:
            self._close()

    def cut(self) -> None:
        """Drop the connection; the handler of an exchange in progress is cancelled."""
        self.transport.abortConnection()

    # Bytes to requests.

    def _advance(self) -> None:
        """Begin exchanges until one stays in progress or the bytes run out.

        A loop, because an exchange may end within its beginning: a client that
        pipelines a thousand requests must not be answered a thousand calls deep.
        """
        if self._advancing:
            return
        self._advancing = True
        try:
            while self._held and self._exchange is None and self._state is _OPEN and not self.outlet.buffered:
                data, self._held = self._held, b""
                self._take_head(data)
        finally:
            self._advancing = False
        if self._reading_paused:
            self.resume_reading()

    def _take_head(self, data: bytes) -> None:
        begun = self._heads.begun
        try:
            found = self._heads.feed(data)
            if found is None:
                if self._heads.begun and not begun:
                    self._deadline.set(self._limits.head_seconds)
                return
            head = self._owner.memory.read(found[0])
            self._begin(head, found[1])
        except Malformed as error:
            self._refuse(error)

    def _begin(self, head: RequestHead, rest: bytes) -> None:
        length = head.length or 0
        framing = LENGTH if length else CHUNKED if head.kin.chunked else NONE
        owner = self._owner
        intake = Intake(framing, length, owner.limits.body_bytes, owner.room)
        if rest:
            rest = intake.feed(rest)
        exchange = Exchange(self, head, intake, client_host=self._client_host, received=owner.clock.seconds())
        self._deadline.clear()
        self._exchange = exchange
        if rest:
            self._hold(rest)
        if not intake.complete:
            self._await_body()
        errand = Errand(owner.handler(exchange), exchange.handled)
        exchange.errand = errand
        errand.start()

    def _take_body(self, exchange: Exchange, data: bytes) -> None:
        intake = exchange.intake
        try:
            rest = intake.feed(data)
        except Malformed as error:
            self._give_up(exchange, error)
            return
        if rest:
            self._hold(rest)
        if intake.complete:
            self._deadline.clear()
            exchange.body_complete()
        elif not exchange.body_awaited and intake.held_bytes > self._limits.pipeline_bytes:
            self.pause_reading()
        else:
            self._await_body()

    def _await_body(self) -> None:
        """Limit the time for the next bytes of a body, unless it is we who keep the client waiting."""
        exchange = self._exchange
        if exchange is None or exchange.intake.complete or self._state is not _OPEN:
            return
        if self._reading_paused or exchange.awaits_continue:
            self._deadline.clear()
        else:
            self._deadline.set(self._limits.body_seconds)

    def _hold(self, data: bytes) -> None:
        """Keep what belongs to a later request; enough of it, and reading stops."""
        self._held += data
        if len(self._held) > self._limits.pipeline_bytes:
            self.pause_reading()
            self._look_after()

    def _look_after(self) -> None:
        """Notice from now on if this client leaves while it waits, although it is not read from."""
        wire = self.outlet.wire()
        if self._lookout is None and wire is not None:
            self._lookout = Lookout(wire, self._owner.clock, self._ask, self._is_unheard, self._left)
        if self._lookout is not None:
            self._lookout.start()

    def _is_unheard(self) -> bool:
        """Return whether the client waits, and its end would not be heard."""
        exchange = self._exchange
        if exchange is None or not self._reading_paused:
            return False
        return self._state is _TUNNEL or self._may_wait(exchange)

    def _ask(self, probe: bytes) -> None:
        """Ask a client that has ended its side, and is not heard, whether it is there.

        Inside TLS its end is its end, as where it is heard; a tunnel is no place for words of ours.
        """
        if self._state is not _OPEN:
            return
        if isinstance(self.outlet, SocketOutlet):
            self.outlet.write(probe)
        else:
            self._left()

    def _drained(self) -> None:
        """The client has taken some of what waited for it."""
        exchange = self._exchange
        if exchange is not None:
            if self._progress_due:
                self._await_taking()
            if exchange.on_drain is not None:
                exchange.on_drain()
        elif self._state is _OPEN:
            self._await_taking()
            if not self.outlet.buffered:
                self._advance()
        elif self.outlet.buffered:
            self._await_taking()

    def _await_taking(self) -> None:
        """Limit the time in which the client takes nothing of what is there for it."""
        self._untaken = self.outlet.untaken
        self._deadline.set(self._limits.idle_seconds)

    # Ends.

    def _may_wait(self, exchange: Exchange) -> bool:
        """Return whether a client that has ended its side can be asked if it is still there."""
        return (
            self._state is _OPEN
            and exchange.intake.complete
            and not exchange.started
            and exchange.head.version == (1, 1)
        )

    def _left(self) -> None:
        """The client is gone in the middle of its request or of the response."""
        self._leave()
        self.transport.abortConnection()

    def _leave(self) -> None:
        """Nobody is there to be answered any more."""
        self._state = _State.CLOSING
        if self._probe is not None:
            self._probe.stop()
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            return
        exchange.intake.give_back()
        if not exchange.finished:
            exchange.lost()
            exchange.cancel()
            exchange.over()

    def handled(self, exchange: Exchange, error: BaseException | None) -> None:
        """The handler is over; whatever it left undone is done here."""
        if error is not None:
            self._handler_failed(exchange, error)
        elif not exchange.started and not exchange.gone and not exchange.finished:
            self._log.error(
                "http.left_unanswered method={method} target={target}",
                method=exchange.head.method,
                target=exchange.head.target,
            )
            exchange.respond(500, b"no answer was given\n", headers=TEXT)

    def _handler_failed(self, exchange: Exchange, error: BaseException) -> None:
        if exchange.gone and isinstance(error, CancelledError | ClientGone):
            return
        self._log.failure(
            "http.handler_failed method={method} target={target}",
            failure=Failure(error),
            method=exchange.head.method,
            target=exchange.head.target,
        )
        if exchange.started or exchange.gone:
            exchange.abort()
        else:
            exchange.respond(500, b"internal error\n", headers=TEXT)

    def _give_up(self, exchange: Exchange, error: Malformed) -> None:
        """The body is broken: whoever answers this exchange has lost its client."""
        self._exchange = None
        exchange.intake.give_back()
        if exchange.started:
            self.abort()
        else:
            exchange.status = error.status
            self._refuse(error)
        exchange.lost()
        exchange.cancel()
        exchange.over()

    def _refuse(self, error: Malformed) -> None:
        """Say what is wrong and close."""
        about, body = self._owner.refusal(error)
        fields = (
            *about,
            (b"Content-Length", b"%d" % len(body)),
            (b"Date", self.date()),
            (b"Connection", b"close"),
        )
        self.outlet.write(format_response(error.status, fields) + body)
        self._linger()

    def _linger(self) -> None:
        """Close, but let a client that is still sending see what it was told first."""
        if isinstance(self.outlet, SocketOutlet) and not self.outlet.buffered:
            self._state = _State.CLOSING
            self._reading_paused = False
            self.transport.resumeProducing()
            self.transport.loseWriteConnection()
            self._untaken = 0
            self._deadline.set(LINGER_SECONDS)
        else:
            self._close()

    def _close(self) -> None:
        self._state = _State.CLOSING
        self._held = b""
        # Also with nothing left to send: TLS says goodbye and waits until it is answered.
        self._await_taking()
        self.outlet.close()

    def _expired(self) -> None:
        exchange = self._exchange
        if self._state is _OPEN and exchange is not None and not self._progress_due:
            # The rest of a body that was answered without it is nobody's loss.
            if not exchange.started:
                self._give_up(exchange, Malformed("request body timed out", 408))
        elif self._state is _State.CLOSING or self.outlet.buffered:
            if self.outlet.untaken < self._untaken:
                self._await_taking()  # slowly, but it does
            else:
                self.abort()
        elif self._heads.begun:
            self._refuse(Malformed("request head timed out", 408))
        else:
            self._close()


def _host_text(peer: IAddress) -> str:
    if not isinstance(peer, IPv4Address | IPv6Address):
        return ""
    # A dual-stack listener sees IPv4 clients under their mapped address.
    return peer.host.removeprefix("::ffff:")
