"""What every scheduler can do: who goes next, and what it says of those who wait.

The dispatcher knows this and no more; `serial` and `fifo` are the two that there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from llamaswap.scheduling.explaining import Explanation, Terms
from llamaswap.scheduling.forecast import Eta, Job, Planned
from llamaswap.scheduling.vocabulary import Band, Decision, Facts, Handover, QueueView, Ticket


class Scheduler(Protocol):
    """Who goes next.  Events in, decisions out; owns its queue, touches nothing else.

    Decisions are to be carried out in order.  Every ticket that arrived is
    either waiting, dispatched, refused or cancelled, and never two of these.
    A ticket is known by its number: the one that `reprioritise` replaced still
    names it.
    """

    bypass_when_resident: bool
    """Whether calls that only look (GET, HEAD, counting) may use a resident model without a ticket."""

    @property
    def paused(self) -> frozenset[Band]:
        """The bands of which nobody is dispatched."""

    def arrived(self, ticket: Ticket, facts: Facts) -> Sequence[Decision]:
        """A request wants `ticket.model`."""

    def cancelled(self, ticket: Ticket, facts: Facts) -> Sequence[Decision]:
        """The client of a waiting, loading or running ticket is gone; its upstream connection too."""

    def loaded(self, model: str, facts: Facts) -> Sequence[Decision]:
        """A `Load` ended well."""

    def load_failed(self, model: str, why: str, output: Sequence[str], facts: Facts) -> Sequence[Decision]:
        """A `Load` ended badly; `why` is one line, `output` the child's last lines."""

    def released(self, ticket: Ticket, facts: Facts) -> Sequence[Decision]:
        """The upstream's response to a served ticket has ended, or failed."""

    def unloaded(self, models: frozenset[str], facts: Facts) -> Sequence[Decision]:
        """Somebody told us to stop these models; loads of them are already ended."""

    def closing(self, facts: Facts) -> Sequence[Decision]:
        """The daemon stops: nobody is dispatched any more."""

    def pause(self, bands: frozenset[Band], facts: Facts) -> Sequence[Decision]:
        """Dispatch nobody of these bands any more; what is dispatched goes on."""

    def resume(self, bands: frozenset[Band], facts: Facts) -> Sequence[Decision]:
        """Let these bands go on, at once if there is room."""

    def reprioritise(self, ticket: Ticket, priority: int, facts: Facts) -> tuple[Ticket, Sequence[Decision]]:
        """Give a waiting ticket another priority; it keeps its number and its arrival time.

        Returns:
            The ticket that waits in its stead, and what follows: maybe its own dispatch.

        Raises:
            KeyError: it does not wait.
        """

    def hand_over(self) -> Handover:
        """Give everything away, to be taken over by another scheduler; this one is spent."""

    def take_over(self, handover: Handover, facts: Facts) -> Sequence[Decision]:
        """Go on where another scheduler stopped; before anything else arrives.

        A waiting ticket whose model this scheduler does not know is refused.
        """

    def resident(self, model: str, facts: Facts) -> bool:
        """Return whether the model is ready and would need neither a start nor an eviction to serve."""

    def fits(self, model: str, facts: Facts) -> bool:
        """Return whether the model, loaded or not, may run beside what runs now without an eviction."""

    def wanted(self, model: str) -> bool:
        """Return whether a ticket for this model may go, loads or runs; one of a paused band may not."""

    def position(self, ticket: Ticket, facts: Facts) -> int | None:
        """Return how many would go before a waiting ticket, plus one; None if it does not wait.

        What arrives later, or becomes resident, may still go before it.  The tickets of paused
        bands come after all others.
        """

    def waiting(self) -> int:
        """Return how many tickets wait, those of paused bands included."""

    def ticket(self, number: int) -> Ticket | None:
        """Return the waiting ticket of this number, paused or not; None if none waits."""

    def plan(self, jobs: Sequence[Job], facts: Facts, skip: int = 0) -> Iterator[Planned]:
        """Walk those who wait in the order in which they go if nobody comes or leaves.

        The tickets of paused bands come last, without an estimate.  Whatever happens to the
        scheduler ends the walk: it is to be asked again.

        Args:
            jobs: what is dispatched, with how long it has lasted.
            facts: of now.
            skip: how many of the first to pass over.
        """

    def eta(self, ticket: Ticket, jobs: Sequence[Job], facts: Facts) -> Eta | None:
        """Return when a waiting ticket will be dispatched; None if nobody can say.

        Args:
            ticket: one that waits.
            jobs: as for `plan`.
            facts: of now.
        """

    def terms(self, ticket: Ticket, facts: Facts) -> Terms | None:
        """Return what the score of a ticket is made of; None where nothing is scored."""

    def explain(self, ticket: Ticket, facts: Facts, most: int = 100) -> Explanation:
        """Return why a waiting ticket has its place.

        For one of a paused band: the place that it would have if nobody was paused.

        Args:
            ticket: one that waits.
            facts: of now.
            most: how many of those ahead are named; all are counted.

        Raises:
            NeedsSerial: this scheduler scores nothing.
            KeyError: it does not wait.
        """

    def band(self, ticket: Ticket) -> Band:
        """Return the band that a ticket is counted in."""

    def waiting_metadata(self, ticket: Ticket, now: float) -> Mapping[str, str]:
        """Return what an activity row says of a ticket that left before it was dispatched."""

    def view(self, now: float) -> QueueView:
        """Return a snapshot for metrics and pages."""
