"""The score, exactly: priority + swap affinity + aging, in whole microseconds.

    score = priority + affinity + waited / divisor

All waiting tickets age at one rate, so between two tickets with the same
affinity the order never changes with time.  It is the order of the constant

    key = (priority + affinity) * divisor - arrival        (divisor > 0)

kept here as an int of microseconds, which is exact for every 64-bit priority
where a float is not.  With aging off the key is the points alone.  Equal keys
keep arrival order: the caller compares ticket numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from llamaswap.config.model import SerialSettings
from llamaswap.scheduling.vocabulary import MICROSECONDS, Ticket, format_thousandths

__all__ = ["Formula", "format_thousandths", "microseconds", "waited_us"]


@dataclass(frozen=True, slots=True)
class Formula:
    """The two knobs of the score, as whole numbers."""

    divisor_us: int  # microseconds of waiting per point; 0 = no aging
    bonus: int  # points, 0..99

    @classmethod
    def of(cls, settings: SerialSettings) -> Formula:
        """Turn settings into whole microseconds; a divisor above 0 never rounds down to "off"."""
        divisor = settings.aging_divisor
        return cls(max(1, round(divisor * MICROSECONDS)) if divisor > 0 else 0, settings.swap_affinity_bonus)

    def key(self, ticket: Ticket) -> int:
        """Return the ticket's constant key without affinity; a higher one goes first."""
        if not self.divisor_us:
            return ticket.priority
        return ticket.priority * self.divisor_us - microseconds(ticket.arrived)

    def affinity_key(self) -> int:
        """Return what the affinity bonus adds to a key."""
        return self.bonus * (self.divisor_us or 1)

    def thousandths(self, ticket: Ticket, now: float, *, resident: bool) -> int:
        """Return the score now, in thousandths of a point, rounded half up."""
        return self.thousandths_after(ticket, waited_us(ticket, now), resident=resident)

    def thousandths_after(self, ticket: Ticket, waited: int, *, resident: bool) -> int:
        """`thousandths` of a ticket that has waited for so many microseconds."""
        points = (ticket.priority + (self.bonus if resident else 0)) * 1000
        return points + self._aged(waited) if self.divisor_us else points

    def _aged(self, waited: int) -> int:
        return (2000 * waited + self.divisor_us) // (2 * self.divisor_us)


def microseconds(seconds: float) -> int:
    """Return whole microseconds."""
    return round(seconds * MICROSECONDS)


def waited_us(ticket: Ticket, now: float) -> int:
    """Return how long the ticket has waited, in microseconds, never negative.

    A clock that was set back must not make a fresh ticket look as if it came
    from the future.
    """
    return max(0, microseconds(now) - microseconds(ticket.arrived))
