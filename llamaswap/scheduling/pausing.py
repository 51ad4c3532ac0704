"""All who wait: the room from which is picked, and beside it the one of the paused bands.

Whoever waits is in exactly one of the two rooms, by his band and by which bands are
paused.  A pick looks into the first room alone, so that a pause costs those nothing
who are not paused, and no pause costs nobody anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import msgspec

from llamaswap.scheduling.score import Formula
from llamaswap.scheduling.vocabulary import NO_BAND, Band, BandView, Ticket, band_of
from llamaswap.scheduling.waiting import WaitingRoom


class Lobby:
    """Both rooms.

    Args:
        formula: the score, for both.
    """

    def __init__(self, formula: Formula) -> None:
        self.open = WaitingRoom(formula)  # from here the scheduler picks
        self.closed = WaitingRoom(formula)  # the tickets of the paused bands
        self.paused: frozenset[Band] = NO_BAND

    def __len__(self) -> int:
        return len(self.open) + len(self.closed)

    def __iter__(self) -> Iterator[Ticket]:
        return chain(self.open, self.closed)

    def add(self, ticket: Ticket) -> None:
        """Let a ticket wait where its band does."""
        self._room(ticket.priority).add(ticket)

    def remove(self, ticket: Ticket) -> None:
        """Take a ticket away; KeyError if it does not wait."""
        self._room(ticket.priority).remove(ticket)

    def ticket(self, number: int) -> Ticket | None:
        """Return the waiting ticket of this number, if there is one: who it is, whatever priority it had."""
        return self.open.ticket(number) or self.closed.ticket(number)

    def of(self, model: str) -> tuple[Ticket, ...]:
        """Return the tickets that wait for one model, paused ones last."""
        return (*self.open.of(model), *self.closed.of(model))

    def count(self, model: str) -> int:
        """Return how many tickets wait for one model."""
        return self.open.count(model) + self.closed.count(model)

    def pause(self, bands: frozenset[Band]) -> None:
        """Let the tickets of these bands stand still."""
        self.paused |= bands
        _move(bands, self.open, self.closed)

    def resume(self, bands: frozenset[Band]) -> None:
        """Let the tickets of these bands go on; they have kept their place."""
        self.paused -= bands
        _move(bands, self.closed, self.open)

    def reprioritise(self, number: int, priority: int) -> Ticket:
        """Replace a ticket by one of another priority, as old as it is; KeyError if it does not wait."""
        ticket = self.ticket(number)
        if ticket is None:
            raise KeyError(number)
        self._room(ticket.priority).take_out((ticket,))
        other = msgspec.structs.replace(ticket, priority=priority)
        self._room(priority).put_back((other,))
        return other

    def position(self, number: int, resident: frozenset[str]) -> int | None:
        """Return the place of a ticket in the whole order; None if it does not wait.

        The tickets of paused bands come after all others, in their own order.
        """
        ticket = self.ticket(number)
        if ticket is None:
            return None
        if ticket in self.open:
            return self.open.position(ticket, resident)
        return len(self.open) + self.closed.position(ticket, resident)

    def band_view(self, now: float) -> dict[Band, BandView]:
        """Return depth and oldest wait of each band."""
        views = self.open.band_view(now)
        if self.paused:
            still = self.closed.band_view(now)
            views.update((band, still[band]) for band in self.paused)
        return views

    def as_one(self) -> WaitingRoom:
        """Return a room in which all wait as if nobody was paused; a copy unless nobody is."""
        if not self.closed:
            return self.open
        everybody = WaitingRoom(self.open.formula)
        for ticket in sorted(self, key=lambda each: each.number):
            everybody.add(ticket)
        return everybody

    def _room(self, priority: int) -> WaitingRoom:
        return self.closed if self.paused and band_of(priority) in self.paused else self.open


def _move(bands: frozenset[Band], source: WaitingRoom, target: WaitingRoom) -> None:
    tickets = [ticket for band in bands for ticket in source.of_band(band)]
    source.take_out(tickets)
    target.put_back(tickets)
