"""What happens in the daemon, told to whoever listens.

Knows which messages there are and when each is due.  Does not know who listens, how far a listener lags
behind, nor how a message travels (`llamaswap.web.events`).  While nobody listens it subscribes to nothing,
makes up no message and has no timer.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from llamaswap.processes.logbook import Logbook
from llamaswap.scheduling.vocabulary import QueueView
from llamaswap.telemetry.inflight import InFlight
from llamaswap.telemetry.messages import (
    ACTIVITY,
    IN_FLIGHT,
    MODEL_STATUS,
    PROFILE_CHANGED,
    QUEUE_STATUS,
    UI_CONFIG,
    log_message,
    message,
    queue_status,
)

QUEUE_EVERY: Final = 0.25  # seconds between two messages about the queue
MOST_GATHERED: Final = 64 * 1024  # bytes of log that wait for the end of a reactor turn

Tell = Callable[[bytes], None]
"""Takes one message, or several at once; must neither block nor raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """What is true now; asked when a listener comes, and when something is said to have changed."""

    proxy: Logbook
    upstream: Logbook
    models: Callable[[Mapping[str, str]], Sequence[Mapping[str, Any]]]
    """Rows of `modelStatus` with every model's state now, these states aside."""
    session_headers: Sequence[str]
    profile: Callable[[], str | None]
    inflight: InFlight
    queue: Callable[[], QueueView]


class Bulletin:
    """Tells listeners what is true when they come, and what changes from then on.

    Args:
        board: where the facts are.
        clock: `callLater(0, ...)` is the end of the reactor's turn.
    """

    def __init__(self, board: Board, clock: IReactorTime) -> None:
        self._board = board
        self._clock = clock
        self._listeners: dict[int, Tell] = {}
        self._listened = 0
        self._logs = (
            _LogPart("proxy", board.proxy, self._gathered),
            _LogPart("upstream", board.upstream, self._gathered),
        )
        self._logs_due: IDelayedCall | None = None
        self._queue_due: IDelayedCall | None = None
        self._queue_told = float("-inf")  # seconds on the clock

    @property
    def listeners(self) -> int:
        """How many listen."""
        return len(self._listeners)

    def listen(self, tell: Tell) -> Callable[[], None]:
        """Tell what is true now, in one piece, then each later message.

        Returns:
            A function that ends it; calling it again does nothing.
        """
        self._tell_logs()  # what the histories hold must not come a second time
        if not self._listeners:
            self._begin()
        self._listened += 1
        key = self._listened
        tell(b"".join((*self._histories(), *self.current())))
        self._listeners[key] = tell

        def stop() -> None:
            if self._listeners.pop(key, None) is not None and not self._listeners:
                self._end()

        return stop

    def current(self) -> Sequence[bytes]:
        """Return what is true now, the logs aside: for a newcomer, or for one that has missed something."""
        board = self._board
        return (
            message(MODEL_STATUS, board.models({})),
            message(UI_CONFIG, {"activity": {"session_id": list(board.session_headers)}}),
            message(PROFILE_CHANGED, {"active": board.profile()}),
            message(IN_FLIGHT, board.inflight.snapshot()),
            message(QUEUE_STATUS, queue_status(board.queue())),
        )

    def state_changed(self, model: str, state: str) -> None:
        """The process of a model is in this state now.

        Told at once and with the state that was said, though it may have moved on: nobody misses a step.
        """
        self._models_changed({model: state})

    def models_changed(self) -> None:
        """Something else about the models has changed: told with the states as they are."""
        self._models_changed({})

    def profile_changed(self) -> None:
        """Another profile is active now, or none."""
        if self._listeners:
            self._publish(message(PROFILE_CHANGED, {"active": self._board.profile()}))
            self.models_changed()

    def row_written(self, row_id: int) -> None:
        """An activity row can be read, its capture included."""
        if self._listeners:
            self._publish(message(ACTIVITY, {"id": row_id}))

    def queue_changed(self) -> None:
        """Somebody came, went or was served; told at the end of the turn, but not more often than 4/s.

        What comes and goes in flight, and every change of a model's state, is taken for one, too.
        """
        if self._listeners and self._queue_due is None:
            wait = max(0.0, self._queue_told + QUEUE_EVERY - self._clock.seconds())
            self._queue_due = self._clock.callLater(wait, self._tell_queue)

    def _models_changed(self, states: Mapping[str, str]) -> None:
        if self._listeners:
            self._publish(message(MODEL_STATUS, self._board.models(states)))
            self.queue_changed()

    def _begin(self) -> None:
        for part in self._logs:
            part.subscribe()
        self._board.inflight.watch(self._flight_changed)

    def _end(self) -> None:
        for part in self._logs:
            part.unsubscribe()
        self._board.inflight.unwatch()
        for due in (self._logs_due, self._queue_due):
            if due is not None:
                due.cancel()
        self._logs_due = self._queue_due = None

    def _publish(self, told: bytes) -> None:
        self._tell_logs()  # so that what was logged before is told before
        self._send(told)

    def _send(self, told: bytes) -> None:
        for tell in tuple(self._listeners.values()):
            tell(told)

    def _flight_changed(self, change: Mapping[str, Any]) -> None:
        self._publish(message(IN_FLIGHT, change))
        self.queue_changed()

    def _tell_queue(self) -> None:
        self._queue_due = None
        self._queue_told = self._clock.seconds()
        self._publish(message(QUEUE_STATUS, queue_status(self._board.queue())))

    def _gathered(self, size_bytes: int) -> None:
        """A log has grown; `size_bytes` of it wait to be told."""
        if size_bytes > MOST_GATHERED:
            self._tell_logs()
        elif self._logs_due is None:
            self._logs_due = self._clock.callLater(0, self._tell_logs)

    def _tell_logs(self) -> None:
        due, self._logs_due = self._logs_due, None
        if due is not None and due.active():
            due.cancel()
        for part in self._logs:
            text = part.take()
            if text:
                self._send(log_message(part.source, text))

    def _histories(self) -> Sequence[bytes]:
        return [log_message(part.source, part.history()) for part in self._logs]


class _LogPart:
    """One log on its way out: the chunks of a turn become one text."""

    def __init__(self, source: str, book: Logbook, grown: Callable[[int], None]) -> None:
        self.source = source
        self._book = book
        self._grown = grown
        self._chunks: list[bytes] = []
        self._size = 0
        self._decode = _decoder()
        self._unsubscribe: Callable[[], None] | None = None

    def subscribe(self) -> None:
        self._unsubscribe = self._book.subscribe(self._take_up)

    def unsubscribe(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        self._chunks.clear()
        self._size = 0
        self._decode = _decoder()

    def history(self) -> str:
        return self._book.history().decode("utf-8", "replace")

    def take(self) -> str:
        """Return what has been gathered; half a character waits for its other half."""
        if not self._chunks:
            return ""
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._size = 0
        return self._decode(data)

    def _take_up(self, data: bytes) -> None:
        self._chunks.append(data)
        self._size += len(data)
        self._grown(self._size)


def _decoder() -> Callable[[bytes], str]:
    return partial(codecs.getincrementaldecoder("utf-8")("replace").decode, final=False)
