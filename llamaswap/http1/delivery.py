"""The client's side of a relayed response: its head, its body in the right form, its end.

Knows what the client gets and how far it lags behind.  Where the bytes come
from, and what to do about a client that lags, is the relay's affair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from llamaswap.http1.crossing import Crossing, coding_to_undo, cross, replaced
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.framing import NONE, Framing
from llamaswap.http1.heads import ResponseHead, upgrade_headers
from llamaswap.http1.parsing import Malformed
from llamaswap.http1.stream import ResponseStream
from llamaswap.http1.unpacking import Damaged, Unpacker
from llamaswap.http1.writing import (
    CHUNK,
    LAST_CHUNK,
    format_around_length,
    format_lines,
    status_line,
    usual_reason,
)

AddHeaders = Callable[[ResponseHead], Iterable[tuple[bytes, bytes]]]
"""Asked once for all heads that differ in Content-Length only: it must not look at that."""

Into = Callable[[], ResponseStream | None]
"""Asked once, when the head has come: a response that has begun by then and gets the bare body, or None."""


class _Passage(NamedTuple):
    """How all responses with such a head reach such a client."""

    before: bytes  # the client's head up to the number in Content-Length, or all of it
    after: bytes | None  # what is behind the number; None where the client sees none
    dated: bool
    crossing: Crossing
    bare: bool  # of the crossing, as the next
    closes: bool


_AS_THEY_CAME: Final = Crossing.AS_THEY_CAME  # as in `framing`, for nearly every piece
_OUR_CHUNKS: Final = (Crossing.ENCHUNKED, Crossing.RECHUNKED)


class Delivery:
    """One response on its way to one client.

    Args:
        into: asked for a response that has begun already; it gets the bare body.
        add_headers: fields that replace the response's own of the same name.
        high_water: bytes that may wait for the client before it counts as behind.
    """

    __slots__ = (
        "_add_headers",
        "_ask_into",
        "_crossing",
        "_exchange",
        "_held",
        "_high_water",
        "_into",
        "_owes",
        "_unpacker",
        "bare",
    )

    def __init__(
        self,
        exchange: Exchange,
        into: Into | None,
        add_headers: AddHeaders | None,
        high_water: int,
    ) -> None:
        self._exchange = exchange
        self._ask_into = into
        self._into: ResponseStream | None = None
        self._add_headers = add_headers
        self._high_water = high_water
        self._held = b""  # the client's head, waiting to leave with the first body bytes
        self._crossing = _AS_THEY_CAME
        self.bare = False  # the body is wanted without its framing; known when it begins
        self._unpacker: Unpacker | None = None
        self._owes = False  # there is more to unpack as soon as the client has room

    @property
    def behind(self) -> bool:
        """Whether the client has so much to take that nothing should be added."""
        return self._owes or self._exchange.buffered > self._high_water

    def begin(self, head: ResponseHead, framing: Framing, *, more: bool) -> None:
        """Send the client its head, or keep it for a moment when body bytes are at hand.

        Raises:
            Malformed: the client could do nothing with such a response.
        """
        exchange = self._exchange
        into = None if self._ask_into is None else self._join(self._ask_into())
        if head.status == 101 and (into is not None or not upgrade_headers(exchange.head.headers)):
            raise Malformed("101 for a request that asked for no upgrade")
        if b"content-encoding" in head.kin.firsts:
            self._begin_unpacking(head, framing)
        if exchange.gone:
            return
        if into is not None:
            into.answered(head.status)
        else:
            self._held = self._client_head(head, framing)
            if not more:
                self._flush_head()

    def data(self, data: bytes) -> None:
        """Body bytes as they came, framing included; for a bare body they mean nothing."""
        if self._crossing is not _AS_THEY_CAME:
            self._flush_head()
            if self._crossing is Crossing.ENCHUNKED:
                self._exchange.write(CHUNK % (len(data), data))
            elif self._crossing is Crossing.UNTIL_CLOSE:
                self._exchange.write(data)
        elif self._held:
            held, self._held = self._held, b""
            self._exchange.write_all((held, data))
        else:
            self._exchange.write(data)

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
        if size and self._into is None and self._unpacker is None:
            self._exchange.body_bytes = size

    def complete(self) -> bool:
        """The body is complete: write what is still due; `finish` has to follow.

        Returns:
            Whether the response is good as far as it has been read; otherwise the client was cut.
        """
        if self._unpacker is not None and not self._unpacked():
            return False
        if not self._owes:
            if self._held:
                self._flush_head()
            if self._crossing is not _AS_THEY_CAME and self._crossing in _OUR_CHUNKS:
                self._exchange.write(LAST_CHUNK)
        return True

    def finish(self) -> None:
        """End the response now, or when the client has taken what is still to be unpacked."""
        if self._owes:
            self._exchange.answer_rest(self._answer_rest)
        else:
            (self._into or self._exchange).finish()

    def abort(self) -> None:
        """Cut the client, so that nothing sent so far looks complete."""
        (self._into or self._exchange).abort()

    def _join(self, into: ResponseStream | None) -> ResponseStream | None:
        """Go on in a response under way, if there is one: framed by itself, it needs the bare body."""
        self._into = into
        if into is not None:
            self._crossing = Crossing.DECHUNKED
            self.bare = True
        return into

    def _answer_rest(self) -> None:
        if self.complete():
            self.finish()

    def _unpacked(self) -> bool:
        """Unpack what there is room for; False for a body that turns out to be broken."""
        assert self._unpacker is not None
        try:
            self.catch_up()
        except Malformed:
            self.abort()
            return False
        if not self._owes and not self._unpacker.whole and not self._exchange.gone:
            self.abort()  # coded bytes are missing at the end, which somebody would notice
            return False
        return True

    def _begin_unpacking(self, head: ResponseHead, framing: Framing) -> None:
        # Of a response under way the client has seen a head that speaks of no coding.
        asked = self._exchange.head.headers if self._into is None else ()
        coding = coding_to_undo(asked, head, framing)
        if coding is not None:
            if not self._exchange.gone:
                self._unpacker = Unpacker(coding)
        elif self._into is not None and _is_coded(head):
            raise Malformed("encoded, for a request that allowed no encoding")

    def _client_head(self, head: ResponseHead, framing: Framing) -> bytes:
        exchange, add_headers = self._exchange, self._add_headers
        modern = exchange.head.version == (1, 1)
        unpacked = self._unpacker is not None
        # One head has one framing, but when the request was HEAD.
        own = exchange.own_names
        key = (modern, framing is NONE, unpacked, add_headers, own)
        passage = head.kin.memories.get(key)
        if passage is None:
            passage = head.derived(
                key, lambda head: _passage(head, framing, modern, unpacked, add_headers, own)
            )
        before, after, dated, self._crossing, self.bare, closes = passage
        text = head.length_text
        lines = before if after is None or text is None else before + text + after
        return exchange.begin(head.status, lines, dated=dated, close=closes)

    def _flush_head(self) -> None:
        if self._held:
            held, self._held = self._held, b""
            self._exchange.write(held)

    def _write_bare(self, data: bytes) -> None:
        if self._crossing is Crossing.RECHUNKED:
            data = CHUNK % (len(data), data)
        if self._into is not None:
            self._into.write(data)
        elif self._held:
            held, self._held = self._held, b""
            self._exchange.write_all((held, data))
        else:
            self._exchange.write(data)


def _passage(
    head: ResponseHead,
    framing: Framing,
    modern: bool,
    unpacked: bool,
    add_headers: AddHeaders | None,
    own: frozenset[bytes],
) -> _Passage:
    fields, crossing = cross(head, framing, modern=modern, unpacked=unpacked)
    if add_headers is not None:
        fields = replaced(fields, add_headers(head))
    if own:
        fields = [pair for pair in fields if pair[0].lower() not in own]
    # The usual phrase, as Go's proxy writes it; a status that nobody knows keeps its own.
    line = status_line(head.status, usual_reason(head.status) or head.reason)
    if head.length is None:
        before, after = format_lines(line, fields), None
    else:
        before, after = format_around_length(line, fields)
    dated = any(name.lower() == b"date" for name, _ in fields)
    return _Passage(before, after, dated, crossing, crossing.bare, crossing.closes)


def _is_coded(head: ResponseHead) -> bool:
    return (head.get(b"content-encoding") or b"identity").lower() != b"identity"
