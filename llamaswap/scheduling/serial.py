"""Pick the next request for a box that runs one job at a time.

Pure: time comes in as an argument and choices go out as values.  What a
choice does to the world is `llamaswap.dispatch`'s business.

The pick is the dispatch: it happens in the very event that frees the box, and
the load that the winner needs, if any, belongs to its job.  Jobs are never
preempted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from llamaswap.config.model import ModelConfig, SerialSettings
from llamaswap.errors import LoadRefused, ModelUnloaded, Refusal, ShuttingDown, TooManyRequests, UnknownModel
from llamaswap.scheduling.backoff import Backoff
from llamaswap.scheduling.limits import ConcurrencyLimits
from llamaswap.scheduling.score import Formula, waited_us
from llamaswap.scheduling.vocabulary import (
    NO_TERM,
    Band,
    Decision,
    Dispatch,
    Facts,
    Handover,
    Load,
    MakeRoom,
    QueueView,
    Refuse,
    Serve,
    Stop,
    Term,
    Ticket,
    Verdict,
    band_of,
    waiting_metadata,
)
from llamaswap.scheduling.waiting import WaitingRoom


class SerialScheduler:
    """One job at a time, best score first.

    Args:
        settings: the two knobs of the score.
        models: every local model, for the limits that the configuration sets.
        make_room: the eviction planner; it decides what stays loaded beside a job.
        router: the planner's name, for messages.
    """

    bypass_when_resident = True

    def __init__(
        self,
        settings: SerialSettings,
        models: Mapping[str, ModelConfig],
        make_room: MakeRoom,
        router: str = "group",
    ) -> None:
        self._formula = Formula.of(settings)
        self._waiting = WaitingRoom(self._formula)
        self._make_room = make_room
        self._router = router
        self._limits = ConcurrencyLimits(models, default=None)
        self._backoff = Backoff()
        self._models = models
        self._jobs: dict[int, Ticket] = {}  # one at most, or what another scheduler left running side by side
        self._loading: set[int] = set()  # those of them whose model is not ready yet
        self._unclaimed: str | None = None  # a model that still loads although its job's client left
        self._closed = False

    def arrived(self, ticket: Ticket, facts: Facts) -> Sequence[Decision]:
        """Refuse the ticket, let it wait, or dispatch it at once when the box is free."""
        if self._closed:
            return (Refuse(ticket, ShuttingDown()),)
        failing = self._backoff.refusal(ticket.model, facts.now)
        if failing is not None:
            return (Refuse(ticket, failing),)
        if not self._limits.take(ticket.model):
            return (Refuse(ticket, TooManyRequests()),)
        if not self._jobs and not self._waiting:  # the common case needs no comparing
            return self._dispatch(ticket, NO_TERM, facts, resident=self.resident(ticket.model, facts))
        self._waiting.add(ticket)
        return self._pick(facts)

    def cancelled(self, ticket: Ticket, facts: Facts) -> Sequence[Decision]:
        """Forget a waiting ticket, or free the box of a job whose client left.

        A load under way goes on unclaimed until the next pick joins or ends it.
        """
        if ticket in self._waiting:
            self._waiting.remove(ticket)
            self._limits.give_back(ticket.model)
            return ()
        if ticket.number not in self._loading or len(self._jobs_loading({ticket.model})) > 1:
            return self.released(ticket, facts)
        if len(self._jobs) > 1:  # others still run beside it: the box is not free to keep a model warm
            return (Stop(frozenset({ticket.model})), *self._free(ticket, facts))
        self._unclaimed = ticket.model
        return self._free(ticket, facts)

    def loaded(self, model: str, facts: Facts) -> Sequence[Decision]:
        """Let the job that needed this load talk to its upstream."""
        self._backoff.succeeded(model)
        if self._unclaimed == model:
            self._unclaimed = None
        ready = self._jobs_loading({model})
        self._loading.difference_update(ticket.number for ticket in ready)
        return [Serve(ticket) for ticket in ready]

    def load_failed(self, model: str, why: str, output: Sequence[str], facts: Facts) -> Sequence[Decision]:
        """Refuse the job that needed the load; after the third failure in a row, all that wait for it.

        A report about a load that was ended meanwhile says nothing about the model.
        """
        jobs = self._jobs_loading({model})
        if not jobs and self._unclaimed != model:
            return ()
        if self._unclaimed == model:
            self._unclaimed = None
        self._backoff.failed(model, why, output, facts.now)
        decisions = self._refuse_if_failing(model, facts)
        for job in jobs:
            refusal = self._backoff.refusal(model, facts.now) or LoadRefused(why, output)
            decisions += [Refuse(job, refusal), *self._free(job, facts)]
        return decisions

    def released(self, ticket: Ticket, facts: Facts) -> Sequence[Decision]:
        """Free the box: the upstream's response has ended."""
        return self._free(ticket, facts) if ticket.number in self._jobs else ()

    def unloaded(self, models: frozenset[str], facts: Facts) -> Sequence[Decision]:
        """Fail the job that was loading one of these models; its waiting tickets keep waiting."""
        if self._unclaimed in models:
            self._unclaimed = None
        decisions: list[Decision] = []
        for job in self._jobs_loading(models):
            decisions += [Refuse(job, ModelUnloaded(self._router)), *self._free(job, facts)]
        return decisions

    def closing(self, facts: Facts) -> Sequence[Decision]:
        """Refuse everybody who waits; the running job keeps its grace."""
        self._closed = True
        return [self._refuse_waiting(ticket, ShuttingDown()) for ticket in tuple(self._waiting)]

    def hand_over(self) -> Handover:
        """Give the queue, the job and a load under way to another scheduler."""
        return Handover(
            waiting=tuple(sorted(self._waiting, key=lambda ticket: ticket.number)),
            loading=tuple(job for number, job in self._jobs.items() if number in self._loading),
            served=tuple(job for number, job in self._jobs.items() if number not in self._loading),
            unclaimed=frozenset() if self._unclaimed is None else frozenset({self._unclaimed}),
        )

    def take_over(self, handover: Handover, facts: Facts) -> Sequence[Decision]:
        """Go on with one job at a time, once those that another scheduler let run side by side have ended."""
        decisions: list[Decision] = []
        strays = handover.unclaimed & self._models.keys()
        if len(strays) == 1 and not handover.served and not handover.loading:
            (self._unclaimed,) = strays
        elif strays:
            decisions.append(Stop(frozenset(strays)))
        for ticket in (*handover.served, *handover.loading, *handover.waiting):
            self._limits.force(ticket.model)
        for ticket in (*handover.served, *handover.loading):
            self._jobs[ticket.number] = ticket
        self._loading = {ticket.number for ticket in handover.loading}
        for ticket in handover.waiting:
            self._waiting.add(ticket)
        gone = [ticket for ticket in handover.waiting if ticket.model not in self._models]
        decisions += [self._refuse_waiting(ticket, UnknownModel()) for ticket in gone]
        for ticket in handover.loading:
            if ticket.model not in self._models:
                decisions += [Refuse(ticket, UnknownModel()), *self._free(ticket, facts)]
        return [*decisions, *self._pick(facts)]

    def resident(self, model: str, facts: Facts) -> bool:
        """Return whether the model could serve now without a start and without an eviction."""
        return model in facts.ready and not self._make_room(model, facts.running)

    def wanted(self, model: str) -> bool:
        """Return whether a ticket for this model waits, loads or runs."""
        return any(job.model == model for job in self._jobs.values()) or bool(self._waiting.count(model))

    def position(self, ticket: Ticket, facts: Facts) -> int | None:
        """Return the place of a waiting ticket if nothing changed any more; None if it does not wait."""
        if ticket not in self._waiting:
            return None
        return self._waiting.position(ticket, self._resident_models(facts))

    def band(self, ticket: Ticket) -> Band:
        """Return the band of the caller's priority."""
        return band_of(ticket.priority)

    def waiting_metadata(self, ticket: Ticket, now: float) -> Mapping[str, str]:
        """Return what is known of a ticket without a score: its priority, its band and how long it waited."""
        return waiting_metadata(ticket.priority, waited_us(ticket, now))

    def view(self, now: float) -> QueueView:
        """Return depth and oldest wait of each band, and the job."""
        return QueueView(bands=self._waiting.band_view(now), jobs=tuple(self._jobs.values()))

    def _resident_models(self, facts: Facts) -> frozenset[str]:
        """Return the models somebody waits for that are resident."""
        return frozenset(model for model in self._waiting.models() if self.resident(model, facts))

    def _jobs_loading(self, models: Collection[str]) -> list[Ticket]:
        """Return the jobs that wait for a load of one of these models."""
        return [job for job in self._jobs.values() if job.number in self._loading and job.model in models]

    def _refuse_if_failing(self, model: str, facts: Facts) -> list[Decision]:
        """Refuse everybody who waits for a closed model, each with an error of its own to raise."""
        decisions: list[Decision] = []
        for ticket in self._waiting.of(model):
            failing = self._backoff.refusal(model, facts.now)
            if failing is not None:
                decisions.append(self._refuse_waiting(ticket, failing))
        return decisions

    def _refuse_waiting(self, ticket: Ticket, refusal: Refusal) -> Refuse:
        self._waiting.remove(ticket)
        self._limits.give_back(ticket.model)
        return Refuse(ticket, refusal)

    def _free(self, job: Ticket, facts: Facts) -> Sequence[Decision]:
        self._limits.give_back(job.model)
        del self._jobs[job.number]
        self._loading.discard(job.number)
        return self._pick(facts)

    def _pick(self, facts: Facts) -> Sequence[Decision]:
        """Dispatch the best-scoring ticket if the box is free and somebody waits."""
        if self._jobs or self._closed or not self._waiting:
            return ()
        resident = self._resident_models(facts)
        ticket = self._waiting.best(resident)
        changed_by = self._changed_by(ticket, resident)
        self._waiting.remove(ticket)
        return self._dispatch(ticket, changed_by, facts, resident=ticket.model in resident)

    def _dispatch(
        self, ticket: Ticket, changed_by: frozenset[Term], facts: Facts, *, resident: bool
    ) -> Sequence[Decision]:
        """Give the box to this ticket."""
        verdict = self._verdict(ticket, changed_by, facts, resident=resident)
        self._jobs[ticket.number] = ticket
        if resident:
            decisions = (Dispatch(ticket, verdict), Serve(ticket))
            return (*self._end_unclaimed(ticket.model, facts), *decisions) if self._unclaimed else decisions
        self._loading.add(ticket.number)
        return (Dispatch(ticket, verdict), *self._load(ticket.model, facts))

    def _load(self, model: str, facts: Facts) -> Sequence[Decision]:
        """Join the unclaimed load if it is this model's; otherwise start one, ending the other."""
        unclaimed, self._unclaimed = self._unclaimed, None
        if unclaimed == model:
            return ()
        evict = self._make_room(model, facts.running)
        if unclaimed is not None and unclaimed not in facts.ready:
            evict |= {unclaimed}
        return (Load(model, evict),)

    def _end_unclaimed(self, picked: str, facts: Facts) -> Sequence[Decision]:
        """End a load that nobody wants now that the box has another job."""
        unclaimed, self._unclaimed = self._unclaimed, None
        if unclaimed is None or unclaimed == picked or unclaimed in facts.ready:
            return ()
        return (Stop(frozenset({unclaimed})),)

    def _verdict(
        self, ticket: Ticket, changed_by: frozenset[Term], facts: Facts, *, resident: bool
    ) -> Verdict:
        waited = waited_us(ticket, facts.now)
        return Verdict(
            priority=ticket.priority,
            band=band_of(ticket.priority),
            waited_us=waited,
            thousandths=self._formula.thousandths_after(ticket, waited, resident=resident),
            changed_by=changed_by,
        )

    def _changed_by(self, ticket: Ticket, resident: frozenset[str]) -> frozenset[Term]:
        """Return the terms without which the same formula would have picked another ticket."""
        if len(self._waiting) == 1:
            return NO_TERM
        changed = set()
        if self._waiting.best_without_aging(resident) != ticket:
            changed.add(Term.AGING)
        if self._waiting.best_without_affinity() != ticket:
            changed.add(Term.SWAP_AFFINITY)
        return frozenset(changed)
