"""A chat client's company while its model loads: text is typed out until the answer can begin.

Knows when something is said; the words are `llamaswap.web.chatter`'s.  The
dispatcher tells it where the request stands (`queued`, `dispatched`), and who
holds the lease or gets none that it is over (`ends`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from llamaswap.config.model import ModelConfig
from llamaswap.web.chatter import Remarks, closing, event, opening, pieces, queue_notice, remark_line
from llamaswap.web.early import EarlyAnswer

TICK = 0.75  # seconds between two things that are said
TYPED_BYTES_PER_SECOND = 75.0
REMARK_EVERY = (5.0, 9.0)  # seconds, at least and at most

_PATH = b"/v1/chat/completions"


def tells_of_loading(model: ModelConfig, target: bytes, *, stream: bool) -> bool:
    """Return whether a call may be told that its model loads.

    Args:
        target: path and query as the upstream will see them.
        stream: whether the call asked for a streamed answer.
    """
    return stream and model.send_loading_state and target.startswith(_PATH)


class LoadingStory:
    """What one exchange is told between its admission and its answer.

    It begins when the request is admitted, and only if the model is not ready
    then; until that moment the exchange can still be refused with a status.
    Whoever made it sees to it that it is hushed in the end, whatever happened.

    Args:
        early: the answer, an event stream.
        model: the id that is shown.
        clock: what it is typed by.
        dice: chooses remarks and pauses.
        is_ready: whether the model's server answers now.
    """

    def __init__(
        self,
        early: EarlyAnswer,
        model: str,
        clock: IReactorTime,
        dice: Random,
        *,
        is_ready: Callable[[], bool],
    ) -> None:
        self._early = early
        self._model = model
        self._clock = clock
        self._dice = dice
        self._may_begin = True
        self._goes_on = False  # it has begun, and the last words are still to be said
        self._is_ready = is_ready
        self._remarks = Remarks(dice)
        self._position: Callable[[], int | None] | None = None
        self._position_shown: int | None = None
        self._pieces: deque[str] = deque()
        self._call: IDelayedCall | None = None
        self._began = self._tick_at = self._remark_at = 0.0  # seconds on the clock

    # What the dispatcher says.

    def queued(self, position: Callable[[], int | None]) -> None:
        """The request was admitted and waits.

        Args:
            position: its place now, 1 for who goes next; None when it has left the
                queue. Asked once every TICK.
        """
        self._position = position
        self._begin()

    def dispatched(self) -> None:
        """The request's turn has come: its model loads, or serves at once."""
        self._position = None
        self._begin()

    # What the holder of the lease says.

    def ends(self) -> None:
        """The model is ready, or never will be.

        All that is left to say is said at once, so that neither the box nor the
        answer waits for a typist.
        """
        self._may_begin = False
        self.hush()
        if self._goes_on:
            self._goes_on = False
            self._pieces.extend(pieces(closing(self._clock.seconds() - self._began)))
            self._early.say(b"".join(map(event, self._pieces)))
            self._pieces.clear()

    def _begin(self) -> None:
        may_begin, self._may_begin = self._may_begin, False
        if not may_begin or self._is_ready() or not self._early.heard:
            return
        self._goes_on = True
        self._began = self._remark_at = self._clock.seconds()
        self._tick_at = self._began + TICK
        self._pieces.extend(pieces(opening(self._model)))
        self._say_next()

    def _say_next(self) -> None:
        """Type a piece; when there is none left, think of something."""
        if not self._pieces:
            self._think()
        piece = self._pieces.popleft() if self._pieces else ""
        if self._pieces:
            pause = len(piece.encode("utf-8", "replace")) / TYPED_BYTES_PER_SECOND
        else:
            pause = max(0.0, self._tick_at - self._clock.seconds())
        # First, since `hush` may be called while something is said.
        self._call = self._clock.callLater(pause, self._say_next)
        if piece:
            self._early.say(event(piece))

    def _think(self) -> None:
        """Find the next text: news of the queue, now and then a remark, else a dot."""
        now = self._clock.seconds()
        while self._tick_at <= now:
            self._tick_at += TICK
        if not self._early.heard:
            return
        position = self._position() if self._position is not None else None
        if position is not None and position != self._position_shown:
            self._position_shown = position
            self._pieces.extend(pieces(queue_notice(position)))
        elif now >= self._remark_at:
            self._remark_at = now + self._dice.uniform(*REMARK_EVERY)
            self._pieces.extend(pieces(remark_line(self._remarks.next())))
        else:
            self._pieces.append(".")

    def hush(self) -> None:
        """Type no more."""
        call, self._call = self._call, None
        if call is not None:
            call.cancel()
