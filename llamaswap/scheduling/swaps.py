"""The loads that the fifo scheduler has under way side by side, and who waits for each.

Knows which of them get in each other's way.  What a load evicts is the
planner's business, and whether one may begin the scheduler's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from llamaswap.scheduling.vocabulary import Ticket


@dataclass(slots=True)
class Swap:
    """A load under way, and who waits for it."""

    evict: frozenset[str]
    waiters: list[Ticket] = field(default_factory=list)


class Swaps(dict[str, Swap]):
    """The loads under way, by the model that is loaded."""

    def join(self, ticket: Ticket) -> None:
        """Let a ticket wait for its model's load, which is under way."""
        self[ticket.model].waiters.append(ticket)

    def leave(self, ticket: Ticket) -> bool:
        """Let a ticket no longer wait for its load, whatever priority it had before; False if it does not."""
        swap = self.get(ticket.model)
        for waiter in swap.waiters if swap else ():
            if swap and waiter.number == ticket.number:
                swap.waiters.remove(waiter)
                return True
        return False

    def end(self, model: str) -> list[Ticket]:
        """Forget the load of a model, if there is one, and return who waited for it."""
        swap = self.pop(model, None)
        return swap.waiters if swap else []

    def waiters(self) -> tuple[Ticket, ...]:
        """Return all who wait for a load."""
        return tuple(ticket for swap in self.values() for ticket in swap.waiters)

    def evicts(self, model: str) -> bool:
        """Return whether a model is to stop for one of these loads."""
        return any(model in swap.evict for swap in self.values())

    def collides(self, model: str, evict: frozenset[str]) -> bool:
        """Return whether loading the model would cross a load that is under way."""
        return any(
            target in evict or model in swap.evict or evict & swap.evict for target, swap in self.items()
        )
