"""The fifo scheduler's queue: highest priority first, arrival order among equals.

The caller's priority counts together with the one that its model is configured
with.  Tickets of paused bands stay in line, and are passed over.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping

import msgspec

from llamaswap.scheduling.vocabulary import NO_BAND, Band, BandView, Ticket, band_of


class FifoQueue:
    """Who waits, in order.

    Args:
        priorities: points per real model id, added to the caller's.
    """

    def __init__(self, priorities: Mapping[str, int]) -> None:
        self.paused: frozenset[Band] = NO_BAND
        self._priorities = priorities
        self._line: list[Ticket] = []  # in the order of `_rank`
        self._tickets: dict[int, Ticket] = {}  # the same, by number

    def __len__(self) -> int:
        return len(self._line)

    def __iter__(self) -> Iterator[Ticket]:
        return iter(self._line)

    def priority(self, ticket: Ticket) -> int:
        """Return the sum that the ticket is ordered by."""
        return self._priorities.get(ticket.model, 0) + ticket.priority

    def band(self, ticket: Ticket) -> Band:
        """Return the band of that sum."""
        return band_of(self.priority(ticket))

    def stands(self, ticket: Ticket) -> bool:
        """Return whether its band is paused."""
        return bool(self.paused) and self.band(ticket) in self.paused

    def add(self, ticket: Ticket) -> None:
        """Put a ticket in its place."""
        insort(self._line, ticket, key=self._rank)
        self._tickets[ticket.number] = ticket

    def remove(self, ticket: Ticket) -> bool:
        """Take a ticket out; False if it is not here."""
        place = self._place(ticket)
        if place is not None:
            del self._line[place]
            del self._tickets[ticket.number]
        return place is not None

    def take_all(self) -> list[Ticket]:
        """Take everybody out, in order."""
        line, self._line, self._tickets = self._line, [], {}
        return line

    def leave(self, tickets: list[Ticket]) -> None:
        """Let these be all who wait; in order, as `take_all` gave them."""
        self._line = tickets
        self._tickets = {ticket.number: ticket for ticket in tickets}

    def reprioritise(self, ticket: Ticket, priority: int) -> Ticket:
        """Replace a ticket by one of another priority, as old as it is; KeyError if it is not here."""
        if not self.remove(ticket):
            raise KeyError(ticket.number)
        other = msgspec.structs.replace(ticket, priority=priority)
        self.add(other)
        return other

    def ticket(self, number: int) -> Ticket | None:
        """Return the ticket of this number, if it is here."""
        return self._tickets.get(number)

    def in_order(self) -> list[Ticket]:
        """Return everybody as they would go, those of paused bands last."""
        return sorted(self._line, key=self.stands) if self.paused else list(self._line)

    def position(self, ticket: Ticket) -> int | None:
        """Return the place in `in_order`, from 1; None if it is not here."""
        place = self._place(ticket)
        if place is None:
            return None
        return self.in_order().index(self._line[place]) + 1 if self.paused else place + 1

    def band_view(self, now: float) -> dict[Band, BandView]:
        """Return depth and oldest wait of each band."""
        waits: dict[Band, list[float]] = {band: [] for band in Band}
        for ticket in self._line:
            waits[self.band(ticket)].append(max(0.0, now - ticket.arrived))
        return {band: BandView(depth=len(w), oldest_wait=max(w, default=0.0)) for band, w in waits.items()}

    def _rank(self, ticket: Ticket) -> tuple[int, int]:
        return (-self.priority(ticket), ticket.number)

    def _place(self, ticket: Ticket) -> int | None:
        """Return the index of a ticket, whatever priority it had before; None if it is not here."""
        waiting = self._tickets.get(ticket.number)
        return None if waiting is None else bisect_left(self._line, self._rank(waiting), key=self._rank)
