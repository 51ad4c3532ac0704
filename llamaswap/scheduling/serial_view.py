"""What a serial scheduler says of its queue: places, plans, reasons, snapshots.

Questions only.  Nothing here moves a ticket; who goes next is decided in
`llamaswap.scheduling.serial`, which holds the same state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from llamaswap.config.model import SerialSettings
from llamaswap.errors import ModelProtected
from llamaswap.scheduling import explaining, forecast
from llamaswap.scheduling.budget import SwapBudget
from llamaswap.scheduling.estimates import Estimates
from llamaswap.scheduling.explaining import Explanation, Terms
from llamaswap.scheduling.forecast import Eta, Job, Planned
from llamaswap.scheduling.guarding import turned_away
from llamaswap.scheduling.pausing import Lobby
from llamaswap.scheduling.score import Formula, waited_us
from llamaswap.scheduling.vocabulary import (
    Band,
    Facts,
    MakeRoom,
    QueueView,
    Ticket,
    band_of,
    waiting_metadata,
)
from llamaswap.scheduling.waiting import WaitingRoom


class SerialOutlook:
    """The state of a serial scheduler, and the questions about it.

    Args:
        settings: the knobs.
        make_room: the eviction planner.
        estimates: how long things take, as measured.
        largest_offset: points that the configuration adds to somebody's priority.
        protected: the models that keep their place while they run.
    """

    def __init__(
        self,
        settings: SerialSettings,
        make_room: MakeRoom,
        estimates: Estimates,
        largest_offset: int,
        protected: frozenset[str] = frozenset(),
    ) -> None:
        self._formula = Formula.of(settings)
        self._lobby = Lobby(self._formula)
        self._waiting = self._lobby.open  # from here alone is picked
        self._make_room = make_room
        self._estimates = estimates
        self._largest_offset = largest_offset
        self._protected = protected
        self._width = {model: jobs for model, jobs in settings.width.items() if jobs > 1}
        self._swap_budget = settings.swap_budget
        self._budget = SwapBudget(settings.swap_budget, estimates) if settings.swap_budget else None
        # By number, of one model, or what another scheduler left running side by side.
        self._jobs: dict[int, Ticket] = {}
        self._loading: set[int] = set()  # those of them whose model is not ready yet

    @property
    def paused(self) -> frozenset[Band]:
        """The bands of which nobody is dispatched."""
        return self._lobby.paused

    def resident(self, model: str, facts: Facts) -> bool:
        """Return whether the model could serve now without a start and without an eviction."""
        return model in facts.ready and not self._make_room(model, facts.running)

    def fits(self, model: str, facts: Facts) -> bool:
        """Return whether the model may run beside what runs now."""
        return not self._make_room(model, facts.running)

    def wanted(self, model: str) -> bool:
        """Return whether a ticket for this model may go, loads or runs; one of a paused band may not."""
        return any(job.model == model for job in self._jobs.values()) or bool(self._waiting.count(model))

    def waiting(self) -> int:
        """Return how many tickets wait."""
        return len(self._lobby)

    def ticket(self, number: int) -> Ticket | None:
        """Return the waiting ticket of this number."""
        return self._lobby.ticket(number)

    def position(self, ticket: Ticket, facts: Facts) -> int | None:
        """Return the place of a waiting ticket if nothing changed any more; None if it does not wait.

        It is the place by score, those of paused bands after all others; a swap budget may
        let some go before their turn.
        """
        return self._lobby.position(ticket.number, self._resident_of(self._lobby, facts))

    def band(self, ticket: Ticket) -> Band:
        """Return the band of the caller's priority."""
        return band_of(ticket.priority)

    def waiting_metadata(self, ticket: Ticket, now: float) -> Mapping[str, str]:
        """Return what is known of a ticket without a score: its priority, its band and how long it waited."""
        return waiting_metadata(ticket.priority, waited_us(ticket, now))

    def view(self, now: float) -> QueueView:
        """Return depth and oldest wait of each band, and the job or jobs."""
        lobby = self._lobby
        return QueueView(bands=lobby.band_view(now), jobs=tuple(self._jobs.values()), paused=lobby.paused)

    def plan(self, jobs: Sequence[Job], facts: Facts, skip: int = 0) -> Iterator[Planned]:
        """Walk those who wait in the order in which they go if nobody comes, those of paused bands last."""
        going = len(self._waiting)
        if skip < going:
            yield from forecast.plan(self._waiting, skip=skip, **self._known(jobs, facts))
        if self._lobby.closed:
            yield from self._plan_paused(facts, max(0, skip - going))

    def eta(self, ticket: Ticket, jobs: Sequence[Job], facts: Facts) -> Eta | None:
        """Return when a waiting ticket will be dispatched; None if nobody can say."""
        waiting = self._waiting.ticket(ticket.number)
        if waiting is None:
            return None
        return forecast.eta_of(waiting, self._waiting, **self._known(jobs, facts))

    def terms(self, ticket: Ticket, facts: Facts) -> Terms | None:
        """Return what the score of a ticket is made of now."""
        resident = self.resident(ticket.model, facts)
        return explaining.terms(ticket, self._formula, facts.now, resident=resident)

    def explain(self, ticket: Ticket, facts: Facts, most: int = 100) -> Explanation:
        """Return why a waiting ticket has its place; of a paused one, the place if nobody was paused.

        Raises:
            KeyError: it does not wait.
        """
        waiting = self._lobby.ticket(ticket.number)
        if waiting is None:
            raise KeyError(ticket.number)
        room = self._waiting if waiting in self._waiting else self._lobby.as_one()
        return explaining.explain(
            waiting,
            room,
            formula=self._formula,
            facts=facts,
            resident=self._resident_of(room, facts),
            most=most,
            offset=self._largest_offset,
            swap_budget=self._budget.left if self._budget else None,
        )

    def _resident_models(self, facts: Facts) -> frozenset[str]:
        """Return the models somebody waits for, unpaused, that are resident."""
        return self._resident_of(self._waiting, facts)

    def _resident_of(self, who: Lobby | WaitingRoom, facts: Facts) -> frozenset[str]:
        """Return the models they wait for that are resident; few models are ready, many are waited for."""
        return frozenset(model for model in facts.ready if who.count(model) and self.resident(model, facts))

    def _held_off(self, ticket: Ticket, facts: Facts) -> ModelProtected | None:
        """Return why a protected model keeps this ticket from going now; None if none does."""
        running = facts.running | {job.model for job in self._jobs.values()}
        return turned_away(ticket, running, facts.stopping, self._protected, self._make_room)

    def _jobs_loading(self, models: Collection[str]) -> list[Ticket]:
        """Return the jobs that wait for a load of one of these models."""
        return [job for job in self._jobs.values() if job.number in self._loading and job.model in models]

    def _takes_more(self, facts: Facts) -> str | None:
        """Return the model of all jobs if its server can take another one now."""
        if self._loading:
            return None
        (model, *others) = {job.model for job in self._jobs.values()}
        if others or len(self._jobs) >= self._width.get(model, 1) or not self.resident(model, facts):
            return None
        return model

    def _known(self, jobs: Sequence[Job], facts: Facts) -> forecast.Known:
        return {
            "formula": self._formula,
            "jobs": jobs,
            "facts": facts,
            "make_room": self._make_room,
            "estimates": self._estimates,
            "width": self._width,
            "swap_budget": self._swap_budget,
            "budget_spent": self._budget.spent if self._budget else 0.0,
        }

    def _plan_paused(self, facts: Facts, skip: int) -> Iterator[Planned]:
        room = self._lobby.closed
        resident = self._resident_of(room, facts)
        for ticket in islice(room.in_order(resident), skip, None):
            swap = ticket.model not in resident
            load = self._estimates.load(ticket.model) if swap else None
            yield Planned(ticket=ticket, swap=swap, eta=None, load=load)
