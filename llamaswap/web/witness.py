"""Who sees an answer in passing, and says afterwards what it came to: its tokens, and a capture of it.

Knows when to look, and what to hold until then; what the bytes mean is `llamaswap.metering`'s business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llamaswap.http1.crossing import replaced
from llamaswap.http1.heads import Headers, RequestHead, ResponseHead, end_to_end
from llamaswap.metering.capture import (
    Capture,
    HeadFields,
    fields_json,
    make_capture,
    wants_request_body,
    wants_response_body,
)
from llamaswap.metering.meter import NOT_METERED, Meter, Metered, meter_whole
from llamaswap.proxying.local import text, unbuffered
from llamaswap.telemetry.inflight import Flight

HELD: Final = 16 * 1024
"""Bytes of an answer that pass before anybody looks at them.

A token's chunk costs 0.15 us so, a list append and an addition; each reader by itself would take more.
"""


class Witness:
    """An observer of one relayed response (`llamaswap.http1.relay.Observer`).

    Args:
        req_path: as the upstream sees it, without the query; it says what is worth looking at.
        metered: whether it has to know of tokens.
        asked: the client's head; only needed for a capture.
        most: bytes of both bodies that a capture may hold; 0 captures nothing.
        flight: None for requests that are not listed.
    """

    __slots__ = (
        "_asked",
        "_due",
        "_flight",
        "_head",
        "_kept",
        "_meter",
        "_metered",
        "_ours",
        "_pieces",
        "_req_path",
        "_room",
        "_sent",
        "passed_bytes",
    )

    def __init__(
        self,
        req_path: str,
        *,
        metered: bool = False,
        asked: RequestHead | None = None,
        most: int = 0,
        flight: Flight | None = None,
    ) -> None:
        self.passed_bytes = 0  # of the body, as they came from the upstream
        self._req_path = req_path
        self._metered = metered
        self._asked = asked if most else None
        self._room = most  # bytes that the capture may still take
        self._flight = flight
        self._head: ResponseHead | None = None
        self._ours = False  # the head is not an upstream's
        self._sent: Sequence[bytes] = ()
        self._pieces: list[bytes] = []  # nobody has looked at these
        self._kept: list[bytes] = []  # for the capture
        self._due = HELD  # how many bytes have to pass before somebody looks
        self._meter: Meter | None = None  # from the first look on
        if flight is not None:
            flight.follow(self)

    def sent(self, body: Sequence[bytes]) -> None:
        """This is what the upstream gets; shared with whoever sends it."""
        if self._asked is not None and wants_request_body(self._req_path):
            self._sent = body
            self._take_room(sum(map(len, body)))

    def head(self, head: ResponseHead) -> None:
        """The final head, as the upstream sent it."""
        self._head = head
        if self._flight is not None:
            self._flight.answered()

    def refused(self, status: int, headers: Headers) -> None:
        """We answer ourselves."""
        self._head = ResponseHead(status, b"", (1, 1), headers)
        self._ours = True
        if self._flight is not None:
            self._flight.answered()

    def data(self, data: bytes) -> None:
        """Some of the body; never empty."""
        self._pieces.append(data)
        self.passed_bytes += len(data)
        if self.passed_bytes > self._due:
            self._look()

    def resp_headers(self) -> Headers:
        """Return the fields that the client got, () as long as there are none."""
        if self._head is None:
            return ()
        return self._head.headers if self._ours else seen_by_client(self._head)

    def metered(self) -> Metered:
        """Return what the upstream's answer came to; all zero if there was none."""
        head = self._head
        if head is None or self._ours or not self._metered:
            return NOT_METERED
        if self._meter is None:
            kind, encoding = described(head)
            return meter_whole(
                self._unseen(),
                req_path=self._req_path,
                status=head.status,
                content_type=kind,
                content_encoding=encoding,
            )
        self._look()
        return self._meter.finish()

    def capture(self, *, broke_off: bool) -> Capture | None:
        """Return the capture, or None where there is none to keep; asked after `metered`, if that is asked.

        Args:
            broke_off: the answer is not whole.
        """
        head = self._head
        if self._asked is not None and head is not None and self._pieces:
            self._keep(self._unseen(), head)
            self._pieces = []
        asked = self._asked
        if asked is None or head is None:
            return None
        shown = head.derived("capture fields", _ours_shown if self._ours else _shown)
        return make_capture(
            req_path=self._req_path,
            asked=HeadFields(asked.derived("capture fields", _asked_shown), asked.length_text),
            req_body=self._sent,
            status=head.status,
            answered=HeadFields(shown, head.length_text),
            content_encoding=described(head)[1],
            resp_body=self._kept,
            resp_bytes=self.passed_bytes,
            broke_off=broke_off,
        )

    def _look(self) -> None:
        """Let everybody look at what has passed since the last time."""
        block = self._unseen()
        self._pieces = []
        self._due = self.passed_bytes + HELD
        head = self._head
        if head is None or not block:
            return
        if self._metered:
            if self._meter is None:
                self._meter = Meter(req_path=self._req_path)
                kind, encoding = described(head)
                self._meter.begin(status=head.status, content_type=kind, content_encoding=encoding)
            self._meter.feed(block)
        self._keep(block, head)

    def _unseen(self) -> bytes:
        """Return what nobody has looked at, in one piece."""
        pieces = self._pieces
        if len(pieces) > 1:
            pieces = self._pieces = [b"".join(pieces)]
        return pieces[0] if pieces else b""

    def _keep(self, block: bytes, head: ResponseHead) -> None:
        """Keep some of the body for the capture, if it is worth it."""
        if self._asked is not None and wants_response_body(self._req_path, head.status):
            self._kept.append(block)
            self._take_room(len(block))

    def _take_room(self, size_bytes: int) -> None:
        """Give the capture up if it outgrows its room."""
        self._room -= size_bytes
        if self._room < 0:
            self._asked = None
            self._sent = ()
            self._kept = []


def described(head: ResponseHead) -> tuple[str, str]:
    """Return Content-Type and Content-Encoding of an answer, '' for what it does not say."""
    return head.derived("type and coding", _described)


def _described(head: ResponseHead) -> tuple[str, str]:
    return text(head.get(b"content-type")), text(head.get(b"content-encoding"))


def seen_by_client(head: ResponseHead) -> Headers:
    """Return the fields of an upstream's response that its client got."""
    return tuple(replaced(list(end_to_end(head.headers)), unbuffered(head)))


# Remembered with the head, so Content-Length is left out, unless it is one that heads do not know for one.


def _asked_shown(head: RequestHead) -> bytes:
    return fields_json(head.headers, with_length=head.length_text is None)


def _shown(head: ResponseHead) -> bytes:
    return fields_json(seen_by_client(head), with_length=head.length_text is None)


def _ours_shown(head: ResponseHead) -> bytes:
    return fields_json(head.headers, with_length=head.length_text is None)
