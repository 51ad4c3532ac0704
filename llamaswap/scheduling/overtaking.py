"""Who may still pass a waiting ticket: the closed form.

A ticket x of priority p arrived at t.  Somebody who comes later, with priority
q, at a > t, is picked before x exactly if his key is greater (`score`; he came
later, so that equal keys leave x in front):

    (q + his affinity) * divisor - a  >  (p + affinity of x) * divisor - t

Affinity is the one part that changes while x waits.  The worst case for x, and
the only one that can be promised whatever is loaded meanwhile, is that his
model is resident and that of x is not: he has the whole bonus, x has nothing.
Solved for his arrival, he can pass only if

    a  <  t + (q - p + bonus) * divisor

so nobody of priority q, or less, who arrives at that moment or after can pass
x.  For an x of the last band that moment may lie 6000 s ahead and more; where
it lies before x arrived, nobody of that priority ever could.  Without aging
(divisor 0) keys have no time in them: he may pass whenever q + bonus > p, or
never.

One thing may go before x all the same: work for models that are resident which
the swap budget lets go before a swap, of so many seconds, once per residency.
"""

from __future__ import annotations

import msgspec

from llamaswap.scheduling.score import Formula, microseconds
from llamaswap.scheduling.vocabulary import BAND_ANCHORS, MICROSECONDS, Band, Ticket


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """Nobody of this priority who arrives at `after` or later can pass."""

    band: Band
    priority: int
    after: float | None  # seconds on the clock of arrivals, perhaps past; None: no such moment, see `ever`
    ever: bool  # whether anybody of this priority who comes from now on may pass


def bounds(ticket: Ticket, formula: Formula, now: float, offset: int) -> tuple[Bound, Bound]:
    """Return the moments for normal and for interactive requests, each with the largest offset in points."""
    return (
        bound(ticket, formula, now, Band.NORMAL, offset),
        bound(ticket, formula, now, Band.INTERACTIVE, offset),
    )


def bound(ticket: Ticket, formula: Formula, now: float, band: Band, offset: int) -> Bound:
    """Return from when on nobody of a band's anchor plus `offset` points can pass this ticket."""
    priority = BAND_ANCHORS[band] + offset
    lead = priority + formula.bonus - ticket.priority
    if not formula.divisor_us:
        return Bound(band=band, priority=priority, after=None, ever=lead > 0)
    after_us = microseconds(ticket.arrived) + lead * formula.divisor_us
    ever = lead > 0 and after_us > microseconds(now)
    try:
        return Bound(band=band, priority=priority, after=after_us / MICROSECONDS, ever=ever)
    except OverflowError:  # further than a float can say
        return Bound(band=band, priority=priority, after=None, ever=ever)
