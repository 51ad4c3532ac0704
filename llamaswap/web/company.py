"""Who keeps a waiting client company: the text of a load, signs of life, or both in one answer.

Knows where the call stands; what is said of that, and when, is up to
`llamaswap.web.loading` and `llamaswap.web.keepalive`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from twisted.internet.interfaces import IReactorTime

from llamaswap.errors import Refusal
from llamaswap.http1.stream import ResponseStream
from llamaswap.rendering import Rendered
from llamaswap.web.early import DOCUMENT, EarlyAnswer
from llamaswap.web.keepalive import BLANK, KeepAlive, Rhythm, comment
from llamaswap.web.loading import LoadingStory


class Company:
    """One call's company, from its arrival to the first byte of its answer.

    Leaving the `with` block ends it, whatever happened.

    Args:
        early: the answer.
        model: the id that is shown.
        story: the text of the load, if it is told.
        rhythm: of the signs of life, if there are any.
    """

    def __init__(
        self,
        early: EarlyAnswer,
        model: str,
        clock: IReactorTime,
        *,
        story: LoadingStory | None,
        rhythm: Rhythm | None,
    ) -> None:
        self._early = early
        self._story = story
        self._model = model
        self._position: Callable[[], int | None] | None = None
        self._doing = "queued"
        self._alive: KeepAlive | None = None
        if rhythm is not None:
            words = self._blank if rhythm.form is DOCUMENT else self._comment
            self._alive = KeepAlive(early, rhythm.every, clock, words)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._hush()
        if self._story is not None:
            self._story.hush()

    # What the dispatcher says.

    def queued(self, position: Callable[[], int | None]) -> None:
        """The call was admitted and waits.

        Args:
            position: its place now, 1 for who goes next; None when it has left the queue.
        """
        self._position = position
        if self._story is not None:
            self._story.queued(position)

    def dispatched(self) -> None:
        """The call's turn has come: its model loads, or serves at once."""
        self._position = None
        self._doing = f"loading {self._model}"
        if self._story is not None:
            self._story.dispatched()

    # What the holder of the lease says.

    def leased(self) -> None:
        """The model is ready, and will be asked now."""
        self._doing = f"waiting for {self._model}"
        if self._story is not None:
            self._story.ends()

    def answered(self) -> ResponseStream | None:
        """The upstream answers: nothing is said behind its first byte.

        Returns:
            The response that its body must go into, or None if that begins with its own head.
        """
        return self._early.go_on(self._hush)

    def refuse(self, refusal: Refusal) -> Rendered | None:
        """The call gets no answer of an upstream; None: nothing was said, and it can still have a status."""
        self._hush()
        if self._story is not None:
            self._story.ends()
        return self._early.refuse(refusal)

    def cancelled(self, refusal: Refusal) -> None:
        """Somebody else ended the call; the text of a load is cut off then, as llama-swap's is."""
        if self._alive is not None:
            self.refuse(refusal)

    def _hush(self) -> None:
        if self._alive is not None:
            self._alive.stop()

    def _comment(self) -> bytes:
        place = self._position() if self._position is not None else None
        return comment(self._doing if place is None else f"queued, position {place}")

    def _blank(self) -> bytes:
        return BLANK
