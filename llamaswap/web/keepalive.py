"""Signs of life for who waits, so that no box on the way takes the silence for an end.

Opt-in (`keepAlive`).  They come only while nothing else is said, and never
behind the first byte of the upstream's answer: an event stream gets comments,
which its readers skip, a JSON document leading white space.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from llamaswap.config.model import KeepAliveConfig
from llamaswap.http1.heads import RequestHead
from llamaswap.telemetry.loglines import one_line
from llamaswap.web.early import DOCUMENT, EVENTS, NAMED_EVENTS, EarlyAnswer, Form

BLANK: Final = b" "
"""What comes before a JSON document."""

_SOON: Final = 0.001  # seconds; a timer may be that early

_MESSAGES: Final = b"/messages"
_GENERATING: Final = frozenset(
    {b"/chat/completions", b"/completions", b"/responses", _MESSAGES, b"/infill", b"/completion"}
)
_COMPUTING: Final = frozenset({b"/embeddings", b"/rerank", b"/reranking", b"/messages/count_tokens"})


class Rhythm(NamedTuple):
    """What an answer is begun as, and when."""

    form: Form
    every: float  # seconds, more than 0


def rhythm_of(config: KeepAliveConfig, head: RequestHead, target: bytes, *, stream: bool) -> Rhythm | None:
    """Return how a call is kept company; None: not at all.

    HTTP/1.0 is welcome: nginx speaks it to its upstreams unless it is told otherwise.

    Args:
        target: path and query as the upstream will see them.
        stream: whether the call asked for a streamed answer.
    """
    if head.method != b"POST":
        return None
    path = target.partition(b"?")[0].removeprefix(b"/v1")
    if path in _GENERATING and stream:
        form = NAMED_EVENTS if path == _MESSAGES else EVENTS
        return Rhythm(form, config.stream) if config.stream else None
    if path in _GENERATING or path in _COMPUTING:
        return Rhythm(DOCUMENT, config.json) if config.json else None
    return None


class KeepAlive:
    """Speaks whenever nobody has for a while.

    Args:
        early: the answer.
        every: seconds of silence that are too long.
        words: what to say.
    """

    def __init__(
        self, early: EarlyAnswer, every: float, clock: IReactorTime, words: Callable[[], bytes]
    ) -> None:
        self._early = early
        self._every = every
        self._clock = clock
        self._words = words
        self._call: IDelayedCall | None = clock.callLater(every, self._beat)

    def stop(self) -> None:
        """Say nothing more."""
        call, self._call = self._call, None
        if call is not None:
            call.cancel()

    def _beat(self) -> None:
        left = self._early.spoken_at + self._every - self._clock.seconds()
        due = left < _SOON
        # First, since `stop` may be called while something is said.
        self._call = self._clock.callLater(self._every if due else left, self._beat)
        if due and self._early.heard:
            self._early.say(self._words())


def comment(what: str) -> bytes:
    """Return a comment for an event stream; it is no event, and belongs to none."""
    return b": " + one_line(what).encode("utf-8", "replace") + b"\n\n"
