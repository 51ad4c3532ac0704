"""Events that the scheduler sees one at a time.

What happens while a decision is carried out (a handler that runs inside a
`callback`, a load that ends at once) becomes an event here and waits its turn,
so nothing recurses.  What an event means is not known here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from llamaswap.scheduling.vocabulary import Decision, Facts

Event = Callable[[Facts], Sequence[Decision]]
"""Lets the scheduler see what happened, in the light of the facts; returns what is to be done."""


def _nothing(_facts: Facts) -> Sequence[Decision]:
    return ()


class Inbox:
    """Takes events up in order, and has carried out what each leads to before the next.

    Args:
        facts: looks at the world, once for each event.
        carry_out: does one decision, at the moment (seconds on the clock) of the event's facts.
        settled: called when no event is left, with the moment of the last one's facts.
    """

    def __init__(
        self,
        facts: Callable[[], Facts],
        carry_out: Callable[[Decision, float], None],
        settled: Callable[[float], None],
    ) -> None:
        self._facts = facts
        self._carry_out = carry_out
        self._settled = settled
        self._events: deque[Event] = deque()
        self._draining = False
        self._held = False
        self.turn = 0  # which event is being carried out

    def post(self, event: Event) -> None:
        """Let the scheduler see an event, after those that came before it."""
        self._events.append(event)
        if not (self._draining or self._held):
            self._drain()

    def hold(self) -> None:
        """Take up no event before `go_on`."""
        self._held = True

    def go_on(self, event: Event) -> None:
        """Take up an event before all those that wait, then those."""
        self._held = False
        self._events.appendleft(event)
        if not self._draining:
            self._drain()

    def _drain(self) -> None:
        events = self._events
        self._draining = True
        now = 0.0
        try:
            while events:
                self.turn += 1
                facts = self._facts()
                now = facts.now
                for decision in events.popleft()(facts):
                    self._carry_out(decision, now)
        finally:
            self._draining = False
            if events:  # one of them raised: those behind it must not wait for whatever comes next
                self.post(_nothing)
        self._settled(now)
