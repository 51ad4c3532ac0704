"""An answer that begins before its upstream has said anything, so that who waits is told something.

The price is the status: it is 200 whatever comes, and an error is told in the
body.  Knows how such an answer begins and ends; what is said in it, and when,
is up to those who speak in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from twisted.internet.interfaces import IReactorTime

from llamaswap.errors import Header, Refusal
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.stream import ResponseStream
from llamaswap.rendering import Rendered, envelope
from llamaswap.web.answers import JSON, UNBUFFERED
from llamaswap.web.chatter import error_event, named_error_event
from llamaswap.web.late_errors import Document, Early, NamedStory, Story

LAGGING_BYTES = 65536
"""A client that has this much unread is told nothing new: it would only read it later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What kind of answer it is going to be."""

    head: tuple[Header, ...]  # its fields; the first is Content-Type
    kind: type[Early]
    refusal: Callable[[Refusal], bytes]


_STREAMED: Final = ((b"Content-Type", b"text/event-stream"), (b"Cache-Control", b"no-cache"), UNBUFFERED)

EVENTS: Final = Form(head=_STREAMED, kind=Story, refusal=error_event)
NAMED_EVENTS: Final = Form(head=_STREAMED, kind=NamedStory, refusal=named_error_event)
DOCUMENT: Final = Form(head=(JSON, UNBUFFERED), kind=Document, refusal=envelope)


class EarlyAnswer:
    """The answer of one exchange, which whoever speaks first begins.

    Args:
        exchange: not yet answered.
        clock: tells when somebody spoke.
    """

    __slots__ = ("_clock", "_exchange", "_form", "_stream", "_told", "spoken_at")

    def __init__(self, exchange: Exchange, form: Form, clock: IReactorTime) -> None:
        self._exchange = exchange
        self._form = form
        self._clock = clock
        self._stream: Early | None = None
        self._told = False
        self.spoken_at = clock.seconds()  # when something was said last; at first, when the wait began

    @property
    def begun(self) -> bool:
        """Whether the client has had a status already."""
        return self._stream is not None

    @property
    def heard(self) -> bool:
        """Whether the client is there, and reads what it is told."""
        return not self._exchange.gone and (self._stream is None or self._stream.buffered <= LAGGING_BYTES)

    def say(self, words: bytes) -> None:
        """Tell the client something, whole events where it reads events."""
        if self._stream is None:
            stream = self._exchange.stream(200, self._form.head, kind=self._form.kind)
            assert isinstance(stream, Early)
            self._stream = stream
        self.spoken_at = self._clock.seconds()
        self._stream.tell(words)

    def go_on(self, on_answer: Callable[[], None]) -> ResponseStream | None:
        """The upstream answers.

        Args:
            on_answer: called before its first byte, after which nothing more may be said.

        Returns:
            The response that its body must go into, or None if nothing was said and the
            answer begins with its own head.
        """
        if self._stream is None:
            on_answer()
        else:
            self._stream.on_answer = on_answer
        return self._stream

    def refuse(self, refusal: Refusal) -> Rendered | None:
        """Tell of a refusal; returns the answer, or None if the client can still have a status."""
        if self._stream is None:
            return None
        if not self._told:
            self._told = True
            self._stream.tell(self._form.refusal(refusal))
            self._stream.finish()
        return Rendered(refusal.status, self._form.head[:1], b"")
