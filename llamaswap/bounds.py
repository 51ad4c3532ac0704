"""How many may wait, and for how long: `maxQueue`, `maxWait`, and what a request says itself.

Knows the limits, who keeps to a deadline, and when somebody need not begin to
wait.  What is done about it is the dispatcher's business.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Final

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from llamaswap.config.model import SerialSettings
from llamaswap.errors import BandFull, DeadlineHopeless
from llamaswap.prospects import Prospects
from llamaswap.scheduling.forecast import Eta
from llamaswap.scheduling.vocabulary import Band, Ticket

LONGEST: Final = 1_000_000.0
"""Seconds of the longest wait that is watched, eleven days: epoll cannot sleep for a month."""

SHORTEST_RETRY: Final = 1
LONGEST_RETRY: Final = 600
UNKNOWN_RETRY: Final = 5
"""Seconds for `Retry-After`: at least, at most, and where nobody can say when there is a place."""

STILL_TRUE: Final = 0.25
"""Seconds for which a wait that is too long is believed to be so for others like it, unless somebody goes:
who comes later waits longer, and a crowd at the door must not cost a forecast each."""

MOST_REMEMBERED: Final = 256
"""Kinds of requests of which that is remembered."""

HINT_LASTS: Final = 1.0
"""Seconds for which a forecast of the next free place is good enough: a crowd asks again and again."""


class _Deadline:
    """Until when one ticket may wait."""

    __slots__ = ("arrived", "at", "own", "timer")

    def __init__(self, arrived: float, at: float, own: float | None, timer: IDelayedCall) -> None:
        self.arrived = arrived
        self.at = at
        self.own = own  # seconds from its arrival that its request asked for
        self.timer = timer


class Bounds:
    """The limits of each band, and the deadlines of those who wait.

    Args:
        clock: has one timer for each ticket with a deadline.
        passed: called with a ticket's number, and the seconds that it may wait, when these are over.
    """

    def __init__(self, clock: IReactorTime, passed: Callable[[int, float], None]) -> None:
        self._clock = clock
        self._passed = passed
        self._settings = SerialSettings()
        self._hints: dict[Band, tuple[float, int]] = {}  # clock seconds of the forecast, seconds to wait
        # By model and priority: clock seconds of the forecast, seconds to wait.
        self._too_long: dict[tuple[str, int], tuple[float, float]] = {}
        self.deadlines: dict[int, _Deadline] = {}  # by ticket number
        self.configured = False

    def configure(self, settings: SerialSettings | None) -> None:
        """From now on these are the limits for newcomers; None: there are none."""
        self._settings = settings or SerialSettings()
        self.configured = bool(self._settings.max_wait or self._settings.max_queue)
        self._hints.clear()
        self._too_long.clear()

    def most(self, band: Band) -> int | None:
        """Return how many of a band may wait."""
        return self._settings.max_queue.get(band) or None

    def longest(self, band: Band, own: float | None) -> float | None:
        """Return how many seconds a newcomer may wait: its own limit or its band's, the smaller one."""
        usual = self._settings.max_wait.get(band) or None
        return min((limit for limit in (usual, own) if limit is not None), default=None)

    def too_many(self, band: Band, depth: int, prospects: Prospects) -> BandFull | None:
        """Return the refusal of a newcomer that makes its band this deep, if that is too much."""
        most = self.most(band)
        return None if most is None or depth <= most else BandFull(band, self._retry_after(band, prospects))

    def hopeless(
        self, ticket: Ticket, band: Band, own: float | None, eta: Callable[[], Eta | None]
    ) -> DeadlineHopeless | None:
        """Return the refusal of a newcomer that would wait too long.

        Args:
            own: seconds that it asks for itself.
            eta: works out when half of its kind would be dispatched; None where nobody can say.
        """
        longest = self.longest(band, own)
        if longest is None:
            return None
        now, kind = self._clock.seconds(), (ticket.model, ticket.priority)
        since, expected = self._too_long.get(kind, (float("-inf"), 0.0))
        if now - since > STILL_TRUE or expected <= longest:
            foretold = eta()
            if foretold is None or foretold.p50 <= longest:
                return None
            expected = foretold.p50
            if len(self._too_long) >= MOST_REMEMBERED:
                self._too_long.clear()
            self._too_long[kind] = (now, expected)
        return DeadlineHopeless(longest, expected)

    def eased(self) -> None:
        """Somebody has gone, or may go sooner: what was too long a wait a moment ago need not be one now."""
        self._too_long.clear()

    def begin(self, ticket: Ticket, band: Band, own: float | None) -> None:
        """Watch how long a newcomer waits, if there is a limit.

        A request's own limit counts from its arrival, its band's from now.
        """
        now = self._clock.seconds()
        ends = [] if own is None else [ticket.arrived + own]
        if usual := self._settings.max_wait.get(band):
            ends.append(now + usual)
        if not ends:
            return
        at = min(*ends, now + LONGEST)
        timer = self._clock.callLater(max(0.0, at - now), self._ring, ticket.number)
        self.deadlines[ticket.number] = _Deadline(ticket.arrived, at, own, timer)

    def move(self, ticket: Ticket, band: Band) -> None:
        """Somebody has put a ticket into another band: that band's limit counts, from now."""
        deadline = self.deadlines.get(ticket.number)
        self.drop(ticket.number)
        self.begin(ticket, band, None if deadline is None else deadline.own)

    def max_wait(self, number: int) -> float | None:
        """Return how many seconds a waiting ticket may wait in all; None = for ever."""
        deadline = self.deadlines.get(number)
        return None if deadline is None else deadline.at - deadline.arrived

    def drop(self, number: int) -> None:
        """The ticket waits no more."""
        deadline = self.deadlines.pop(number, None)
        if deadline is not None and deadline.timer.active():
            deadline.timer.cancel()

    def clear(self) -> None:
        """Nobody waits any more."""
        for number in tuple(self.deadlines):
            self.drop(number)

    def _ring(self, number: int) -> None:
        deadline = self.deadlines.pop(number)
        self._passed(number, deadline.at - deadline.arrived)

    def _retry_after(self, band: Band, prospects: Prospects) -> int:
        """Return seconds until a place in this band is likely to be free."""
        now = self._clock.seconds()
        hint = self._hints.get(band)
        if hint is None or now - hint[0] >= HINT_LASTS:
            eta = prospects.next_of(band)
            seconds = UNKNOWN_RETRY if eta is None else ceil(eta.p50)
            hint = self._hints[band] = (now, min(max(seconds, SHORTEST_RETRY), LONGEST_RETRY))
        return hint[1]
