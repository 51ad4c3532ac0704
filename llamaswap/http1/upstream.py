"""One connection to an upstream: a request goes out, one response comes in.

Knows how a response is told from the bytes of its connection; not what becomes
of it (its `Receiver`'s affair), nor where connections are kept (`Home`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol as Seam

from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IReactorTime
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from typing_extensions import override

from llamaswap.http1.deadline import Deadline
from llamaswap.http1.framing import CHUNKED, LENGTH, NONE, UNTIL_CLOSE, BodyReader, Framing, Sink, body_reader
from llamaswap.http1.heads import ResponseHead, has_no_body
from llamaswap.http1.memory import HeadMemory
from llamaswap.http1.outlet import Outlet, StreamTransport, open_outlet, set_tcp_options
from llamaswap.http1.parsing import HeadBuffer, Malformed

MAX_HEAD_BYTES = 262144
CLOSE_SECONDS = 10.0  # for an upgraded upstream to take what its client sent last

TAKING_SECONDS = 120.0
"""For an upgraded upstream to take some of what its client, who is held back for that, has sent.

Meanwhile nobody would hear the client leave.
"""

STALE_SECONDS = 0.5
"""An upstream that had closed an idle connection before a request came shows it within a round trip or two.

One that keeps the connection for longer and then drops it has taken the request up, and gets it only once.
"""

Address = tuple[str, int]


class Receiver(Seam):
    """Takes one response as it arrives.

    Order: any number of `interim`, one `head`, any number of `data`, `ended`;
    or `failed` in place of whatever is still to come. Nothing after the last.
    """

    def interim(self, head: ResponseHead) -> None:
        """A 1xx head."""

    def head(self, head: ResponseHead, framing: Framing, *, more: bool) -> Sink | None:
        """The final head; what is returned gets the decoded body, before `data` gets it framed.

        Args:
            more: some of the body came with it, and `data` is called at once.

        Raises:
            Malformed: not a response to this request.
        """

    def data(self, data: bytes) -> None:
        """Body bytes exactly as they came, framing included."""

    def ended(self, size: int) -> None:
        """The response is complete, with `size` decoded bytes; its connection is free or closed."""

    def failed(self, reason: str, size: int) -> None:
        """The connection is of no further use, and the response not complete."""

    def drained(self) -> None:
        """The upstream has taken more of what was written to it."""


class Home(Seam):
    """Where a connection goes between requests."""

    memory: HeadMemory[ResponseHead]

    def put_back(self, connection: UpstreamConnection) -> None:
        """The response is complete and the connection in good order."""

    def remove(self, connection: UpstreamConnection) -> None:
        """The connection was lost; it may have been idle."""


class UpstreamConnection(Protocol):
    """One connection to an upstream; carries one request at a time."""

    transport: StreamTransport
    outlet: Outlet

    def __init__(
        self,
        home: Home,
        clock: IReactorTime,
        address: Address,
        made: Callable[[UpstreamConnection], None] | None = None,
    ) -> None:
        self._home = home
        self._made = made
        self._clock = clock
        self._deadline = Deadline(clock, self._expired)
        self._heads = HeadBuffer(MAX_HEAD_BYTES)
        self._receiver: Receiver | None = None
        self._reader: BodyReader | None = None
        self._method = b""
        self._reusable = False
        self._ends_by_closing = False
        self._answered = False
        self._interim_bytes = 0  # of the 1xx heads that came before the response in progress
        self._paused = False
        self._lost = False
        self._lost_unasked = False
        self._sent = 0.0  # when the request in progress was, where that matters
        self._untaken = 0  # bytes that the upstream had still to take when it was last given time for it
        self.address = address
        self.reused = False  # the request in progress is not this connection's first

    @property
    def stale(self) -> bool:
        """Whether it was lost at once and unanswered, after a request that was not its first."""
        return self._lost_unasked

    @property
    def body_bytes(self) -> int:
        """Decoded bytes of the response in progress, so far."""
        return 0 if self._reader is None else self._reader.size

    def send(
        self, request: Sequence[bytes], method: bytes, receiver: Receiver, header_timeout: float = 0
    ) -> None:
        """Send a request whose answer goes to `receiver`.

        Args:
            header_timeout: seconds until the final head must be here; 0 waits for ever.
        """
        self._receiver = receiver
        self._method = method
        self._answered = False
        if self.reused:
            self._sent = self._clock.seconds()
        self._interim_bytes = 0
        if header_timeout:
            self._deadline.set(header_timeout)
        else:
            self._deadline.clear()
        self.outlet.write_all(request)

    def abort(self) -> None:
        """Cut the connection; the receiver hears nothing more."""
        self._receiver = None
        self._reader = None
        self._lost = True
        self._deadline.stop()
        self.outlet.hang_up()
        self.transport.abortConnection()

    def fail(self, reason: str) -> None:
        """Cut the connection, because nothing good can come of the response in progress."""
        receiver = self._receiver
        size = 0 if self._reader is None else self._reader.size
        self.abort()
        if receiver is not None:
            receiver.failed(reason, size)

    def close(self) -> None:
        """Close the connection once everything is out; the receiver hears nothing more."""
        self._receiver = None
        self._reader = None
        self.outlet.close()
        self._deadline.set(CLOSE_SECONDS)

    def expect_taking(self) -> None:
        """Fail if the upstream takes nothing of what was written for long, until `expect_nothing`."""
        self._untaken = self.outlet.untaken
        self._deadline.set(TAKING_SECONDS)

    def expect_nothing(self) -> None:
        """The upstream has taken enough: leave it alone again."""
        self._deadline.clear()

    def rest(self, seconds: float) -> None:
        """Wait in the pool for the next request, this long."""
        self.reused = True
        self._deadline.set(seconds)

    def pause_reading(self) -> None:
        """Take nothing from the upstream until `resume_reading`."""
        if not self._paused and not self._lost:
            self._paused = True
            self.transport.pauseProducing()

    def resume_reading(self) -> None:
        """Go on taking what the upstream sends."""
        if self._paused and not self._lost:
            self._paused = False
            self.transport.resumeProducing()

    # What Twisted calls.

    @override
    def connectionMade(self) -> None:
        set_tcp_options(self.transport)
        self.outlet = open_outlet(self.transport, self._drained)
        made, self._made = self._made, None
        if made is not None:
            made(self)

    @override
    def dataReceived(self, data: bytes) -> None:
        receiver = self._receiver
        if receiver is None:
            # Nothing was asked: whatever this is, the next answer could not be told from it.
            self._home.remove(self)
            self.abort()
            return
        try:
            if self._reader is None:
                self._answered = True
                self._take_head(receiver, data)
            else:
                self._take_body(receiver, self._reader, data)
        except Malformed as error:
            self.fail(f"malformed response: {error.reason}")

    @override
    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._lost = True
        self._lost_unasked = (
            self.reused and not self._answered and self._clock.seconds() - self._sent <= STALE_SECONDS
        )
        self._deadline.stop()
        self.outlet.stopProducing()
        receiver, self._receiver = self._receiver, None
        if receiver is None:
            self._home.remove(self)
            return
        reader, self._reader = self._reader, None
        size = 0 if reader is None else reader.size
        if reader is not None and self._ends_by_closing and reason.check(ConnectionDone):
            receiver.ended(size)
        elif reader is None:
            receiver.failed("connection closed before the response head was complete", size)
        else:
            receiver.failed("connection closed in the middle of the response", size)

    # Bytes to responses.

    def _take_head(self, receiver: Receiver, data: bytes) -> None:
        while True:
            found = self._heads.feed(data)
            if found is None:
                return
            head = self._home.memory.read(found[0])
            data = found[1]
            if head.status >= 200 or head.status == 101:
                break
            self._interim_bytes += len(found[0])
            if self._interim_bytes > MAX_HEAD_BYTES:  # they reach the client at nobody's pace
                raise Malformed("too many interim responses")
            if head.status != 100:
                receiver.interim(head)
            if self._receiver is not receiver or not data:
                return
        self._deadline.clear()
        self._begin(receiver, head, data)

    def _begin(self, receiver: Receiver, head: ResponseHead, rest: bytes) -> None:
        framing, length = _framing_of(head, self._method)
        self._reusable = head.kin.keep_alive and framing is not UNTIL_CLOSE
        self._ends_by_closing = framing is UNTIL_CLOSE
        more = bool(rest) and framing is not NONE and length != 0
        sink = receiver.head(head, framing, more=more)
        if self._receiver is not receiver:
            return
        if framing is LENGTH and length == len(rest) > 0:
            self._take_whole(receiver, sink, rest)
            return
        reader = body_reader(framing, length, sink)
        if reader is None:
            self._complete(receiver, 0, surplus=bool(rest))
            return
        self._reader = reader
        if rest:
            self._take_body(receiver, reader, rest)

    def _take_whole(self, receiver: Receiver, sink: Sink | None, data: bytes) -> None:
        """A body that came in one piece with its head, as most do, needs nobody to follow it."""
        if sink is not None:
            sink(data)
        receiver.data(data)
        self._complete(receiver, len(data), surplus=False)

    def _take_body(self, receiver: Receiver, reader: BodyReader, data: bytes) -> None:
        end = reader.feed(data)
        if end < 0:
            receiver.data(data)
        elif end == len(data):
            receiver.data(data)
            self._complete(receiver, reader.size, surplus=False)
        else:
            receiver.data(data[:end])
            self._complete(receiver, reader.size, surplus=True)

    def _complete(self, receiver: Receiver, size: int, *, surplus: bool) -> None:
        if self._receiver is not receiver:
            return  # it has lost interest
        self._receiver = None
        self._reader = None
        if self._reusable and not surplus and not self.outlet.buffered:
            self.resume_reading()
            self._home.put_back(self)
        else:
            self.abort()
        # Last, because the connection may be sending the next request before this returns.
        receiver.ended(size)

    def _drained(self) -> None:
        if self._receiver is not None:
            self._receiver.drained()

    def _expired(self) -> None:
        if self._receiver is None:
            self._home.remove(self)
            self.abort()
        elif self._reader is None:
            self.fail("timed out waiting for the response head")
        elif self.outlet.untaken < self._untaken:
            self.expect_taking()  # slowly, but it does
        else:
            self.fail(f"took nothing of what its client sent for {TAKING_SECONDS:g} s")


UNKNOWN = -1


def _framing_of(head: ResponseHead, method: bytes) -> tuple[Framing, int]:
    if head.status == 101:
        return UNTIL_CLOSE, UNKNOWN
    if method == b"HEAD" or has_no_body(head.status):
        return NONE, 0
    if head.length is not None:
        return LENGTH, head.length
    if head.kin.chunked:
        return CHUNKED, UNKNOWN
    return UNTIL_CLOSE, UNKNOWN
