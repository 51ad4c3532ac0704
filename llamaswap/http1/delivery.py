"""The client's side of a relayed response: its head, its body in the right form, its end.

Knows what the client gets and how far it lags behind.  Where the bytes come
from, and what to do about a client that lags, is the relay's affair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from llamaswap.http1.crossing import Crossing, coding_to_undo, cross, replaced
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.framing import Framing
from llamaswap.http1.heads import ResponseHead, upgrade_headers, usual_reason
from llamaswap.http1.parsing import Malformed
from llamaswap.http1.stream import ResponseStream
from llamaswap.http1.unpacking import Damaged, Unpacker

AddHeaders = Callable[[ResponseHead], Iterable[tuple[bytes, bytes]]]


class Delivery:
    """One response on its way to one client.

    Args:
        into: a response that has begun already; it gets the bare body.
        add_headers: fields that replace the response's own of the same name.
        high_water: bytes that may wait for the client before it counts as behind.
    """

    __slots__ = (
        "_add_headers",
        "_crossing",
        "_exchange",
        "_held",
        "_high_water",
        "_into",
        "_owes",
        "_unpacker",
    )

    def __init__(
        self,
        exchange: Exchange,
        into: ResponseStream | None,
        add_headers: AddHeaders | None,
        high_water: int,
    ) -> None:
        self._exchange = exchange
        self._into = into
        self._add_headers = add_headers
        self._high_water = high_water
        self._held = b""  # the client's head, waiting to leave with the first body bytes
        # A response under way has a framing of its own; what it needs is the bare body.
        self._crossing = Crossing.AS_THEY_CAME if into is None else Crossing.DECHUNKED
        self._unpacker: Unpacker | None = None
        self._owes = False  # there is more to unpack as soon as the client has room

    @property
    def bare(self) -> bool:
        """Whether it wants the body without its framing."""
        return self._crossing.bare

    @property
    def behind(self) -> bool:
        """Whether the client has so much to take that nothing should be added."""
        return self._owes or self._exchange.buffered > self._high_water

    def begin(self, head: ResponseHead, framing: Framing, *, more: bool) -> None:
        """Send the client its head, or keep it for a moment when body bytes are at hand.

        Raises:
            Malformed: the client could do nothing with such a response.
        """
        exchange, into = self._exchange, self._into
        if head.status == 101 and (into is not None or not upgrade_headers(exchange.head.headers)):
            raise Malformed("101 for a request that asked for no upgrade")
        # Of a response under way the client has seen a head that speaks of no coding.
        coding = coding_to_undo(exchange.head.headers if into is None else (), head, framing)
        if into is not None and coding is None and _is_coded(head):
            raise Malformed("encoded, for a request that allowed no encoding")
        if exchange.gone:
            return
        self._unpacker = None if coding is None else Unpacker(coding)
        if into is None:
            self._held = self._client_head(head, framing)
            if not more:
                self._flush_head()

    def data(self, data: bytes) -> None:
        """Body bytes as they came, framing included; for a bare body they mean nothing."""
        exchange = self._exchange
        if self._crossing is not Crossing.AS_THEY_CAME:
            self._flush_head()
            if self._crossing is Crossing.ENCHUNKED:
                exchange.write(_chunk(data))
            elif self._crossing is Crossing.UNTIL_CLOSE:
                exchange.write(data)
        elif self._held:
            held, self._held = self._held, b""
            exchange.write_all((held, data))
        else:
            exchange.write(data)

    def bare_data(self, data: bytes) -> None:
        """Body bytes without framing.

        Raises:
            Malformed: they are not coded as the head says.
        """
        if self._unpacker is None:
            self._write_bare(data)
        elif not self._exchange.gone:
            self._unpacker.feed(data)
            self.catch_up()
            self._flush_head()

    def catch_up(self) -> None:
        """Unpack what the client has room for.

        Raises:
            Malformed: as `bare_data`.
        """
        exchange, unpacker = self._exchange, self._unpacker
        if unpacker is None:
            return
        self._owes = False
        while not exchange.gone:
            if exchange.buffered > self._high_water:
                self._owes = True
                return
            try:
                piece = unpacker.take()
            except Damaged as error:
                raise Malformed(f"bad content coding: {error.reason}") from error
            if not piece:
                return
            self._write_bare(piece)
            if self._into is None:
                exchange.body_bytes += len(piece)

    def count(self, size: int) -> None:
        """So much of the upstream's body has come; a stream and unpacked pieces are counted as they go."""
        if self._into is None and self._unpacker is None:
            self._exchange.body_bytes = size

    def end(self) -> bool:
        """The body is complete: finish now, or when the client has taken what is still to be unpacked.

        Returns:
            Whether the response is good as far as it has been read; otherwise the client was cut.
        """
        try:
            self.catch_up()
        except Malformed:
            self.abort()
            return False
        if self._owes:
            self._exchange.answer_rest(self.end)
        elif self._breaks_off():
            self.abort()
            return False
        else:
            self._finish()
        return True

    def abort(self) -> None:
        """Cut the client, so that nothing sent so far looks complete."""
        (self._into or self._exchange).abort()

    def _breaks_off(self) -> bool:
        """Whether coded bytes are missing at the body's end, which somebody would notice."""
        return self._unpacker is not None and not self._unpacker.whole and not self._exchange.gone

    def _finish(self) -> None:
        self._flush_head()
        if self._crossing in (Crossing.ENCHUNKED, Crossing.RECHUNKED):
            self._exchange.write(b"0\r\n\r\n")
        (self._into or self._exchange).finish()

    def _client_head(self, head: ResponseHead, framing: Framing) -> bytes:
        exchange = self._exchange
        modern = exchange.head.version == (1, 1)
        unpacked = self._unpacker is not None
        fields, self._crossing = cross(head, framing, modern=modern, unpacked=unpacked)
        if self._add_headers is not None:
            fields = replaced(fields, self._add_headers(head))
        # The usual phrase, as Go's proxy writes it; a status that nobody knows keeps its own.
        reason = usual_reason(head.status) or head.reason
        return exchange.begin(head.status, fields, reason=reason, close=self._crossing.closes)

    def _flush_head(self) -> None:
        if self._held:
            held, self._held = self._held, b""
            self._exchange.write(held)

    def _write_bare(self, data: bytes) -> None:
        if self._crossing is Crossing.RECHUNKED:
            data = _chunk(data)
        if self._into is not None:
            self._into.write(data)
        elif self._held:
            held, self._held = self._held, b""
            self._exchange.write_all((held, data))
        else:
            self._exchange.write(data)


def _is_coded(head: ResponseHead) -> bool:
    return (head.get(b"content-encoding") or b"identity").lower() != b"identity"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
