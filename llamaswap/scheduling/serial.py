"""Pick the next request for a box that runs one job at a time.

Pure: time comes in as an argument and choices go out as values.  What a
choice does to the world is `llamaswap.dispatch`'s business.

The pick is the dispatch: it happens in the very event that frees the box, and
the load that the winner needs, if any, belongs to its job.  Jobs are never
preempted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llamaswap.config.model import ModelConfig, SerialSettings
from llamaswap.errors import LoadRefused, ModelUnloaded, Refusal, ShuttingDown, TooManyRequests, UnknownModel
from llamaswap.scheduling.backoff import Backoff
from llamaswap.scheduling.budget import SwapBudget
from llamaswap.scheduling.choosing import Choice, before_swap, best, verdict_of
from llamaswap.scheduling.estimates import Estimates
from llamaswap.scheduling.guarding import protected_models
from llamaswap.scheduling.limits import ConcurrencyLimits
from llamaswap.scheduling.replanning import replan
from llamaswap.scheduling.score import microseconds
from llamaswap.scheduling.serial_view import SerialOutlook
from llamaswap.scheduling.vocabulary import (
    NO_TERM,
    Band,
    Decision,
    Dispatch,
    Facts,
    Handover,
    Load,
    MakeRoom,
    Refuse,
    Resume,
    Serve,
    Stop,
    Ticket,
    band_of,
)


class SerialScheduler(SerialOutlook):
    """One job at a time, best score first; of a model with a width, so many at a time.

    Args:
        settings: the knobs.
        models: every local model, for the limits that the configuration sets.
        make_room: the eviction planner; it decides what stays loaded beside a job.
        router: the planner's name, for messages.
        estimates: how long things take, as measured; without, nothing was.
        largest_offset: points that the configuration adds to somebody's priority.
    """

    bypass_when_resident = True

    def __init__(
        self,
        settings: SerialSettings,
        models: Mapping[str, ModelConfig],
        make_room: MakeRoom,
        router: str = "group",
        estimates: Estimates | None = None,
        largest_offset: int = 0,
    ) -> None:
        protected = protected_models(models)
        super().__init__(settings, make_room, estimates or Estimates(), largest_offset, protected)
        self._router = router
        self._limits = ConcurrencyLimits(models, default=None)
        self._backoff = Backoff()
        self._models = models
        self._unclaimed: frozenset[str] = frozenset()  # models that load although their job's client left
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
        if self._lobby.paused and band_of(ticket.priority) in self._lobby.paused:
            self._lobby.add(ticket)
            return ()
        if self._protected and (refusal := self._held_off(ticket, facts)):
            self._limits.give_back(ticket.model)
            return (Refuse(ticket, refusal),)
        if not self._jobs and not self._waiting:  # the common case needs no comparing
            choice = Choice(ticket, NO_TERM)
            return self._dispatch(choice, facts, resident=self.resident(ticket.model, facts))
        self._waiting.add(ticket)
        return self._pick(facts)

    def cancelled(self, ticket: Ticket, facts: Facts) -> Sequence[Decision]:
        """Forget a waiting ticket, or free the box of a job whose client left.

        A load under way goes on unclaimed until the next pick joins or ends it.
        """
        waiting = self._lobby.ticket(ticket.number)
        if waiting is not None:
            self._lobby.remove(waiting)
            self._limits.give_back(ticket.model)
            return self._pick(facts)  # it may have been the one whom nobody could overtake
        if ticket.number not in self._loading or len(self._jobs_loading({ticket.model})) > 1:
            return self.released(ticket, facts)
        stays = ticket.model in self._lasting(facts)
        if len(self._jobs) > 1 and not stays:  # others run beside it: no box is free to keep a model warm
            return (Stop(frozenset({ticket.model})), *self._free(ticket, facts))
        self._unclaimed |= {ticket.model}
        return self._free(ticket, facts)

    def loaded(self, model: str, facts: Facts) -> Sequence[Decision]:
        """Let the job that needed this load talk to its upstream."""
        self._backoff.succeeded(model)
        self._unclaimed -= {model}
        ready = self._jobs_loading({model})
        self._loading.difference_update(ticket.number for ticket in ready)
        decisions: list[Decision] = [Serve(ticket) for ticket in ready]
        if model in self._protected:
            decisions += self._turn_away(facts)
        return [*decisions, *self._pick(facts)] if self._width else decisions

    def load_failed(self, model: str, why: str, output: Sequence[str], facts: Facts) -> Sequence[Decision]:
        """Refuse the job that needed the load; after the third failure in a row, all that wait for it.

        A report about a load that was ended meanwhile says nothing about the model.
        """
        jobs = self._jobs_loading({model})
        if not jobs and model not in self._unclaimed:
            return ()
        self._unclaimed -= {model}
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
        self._unclaimed -= models
        decisions: list[Decision] = []
        for job in self._jobs_loading(models):
            decisions += [Refuse(job, ModelUnloaded(self._router)), *self._free(job, facts)]
        return [*decisions, *self._pick(facts)] if self._width else decisions

    def closing(self, facts: Facts) -> Sequence[Decision]:
        """Refuse everybody who waits; the running job keeps its grace."""
        self._closed = True
        return [self._refuse_waiting(ticket, ShuttingDown()) for ticket in tuple(self._lobby)]

    def pause(self, bands: frozenset[Band], facts: Facts) -> Sequence[Decision]:
        """Dispatch nobody of these bands any more; the running job goes on."""
        self._lobby.pause(bands)
        return self._pick(facts)

    def resume(self, bands: frozenset[Band], facts: Facts) -> Sequence[Decision]:
        """Let these bands go on, and pick again."""
        self._lobby.resume(bands)
        return [*(self._turn_away(facts) if bands else ()), *self._pick(facts)]

    def reprioritise(self, ticket: Ticket, priority: int, facts: Facts) -> tuple[Ticket, Sequence[Decision]]:
        """Give a waiting ticket another priority and pick again; KeyError if it does not wait."""
        other = self._lobby.reprioritise(ticket.number, priority)
        if self._protected and other in self._waiting and (refusal := self._held_off(other, facts)):
            return other, (self._refuse_waiting(other, refusal), *self._pick(facts))
        return other, self._pick(facts)

    def hand_over(self) -> Handover:
        """Give the queue, the job and a load under way to another scheduler."""
        return Handover(
            waiting=tuple(sorted(self._lobby, key=lambda ticket: ticket.number)),
            loading=tuple(job for number, job in self._jobs.items() if number in self._loading),
            served=tuple(job for number, job in self._jobs.items() if number not in self._loading),
            unclaimed=self._unclaimed,
            paused=self._lobby.paused,
            budget_spent=self._budget.spent if self._budget else 0.0,
        )

    def take_over(self, handover: Handover, facts: Facts) -> Sequence[Decision]:
        """Go on with one job at a time, once those that another scheduler let run side by side have ended."""
        self._lobby.pause(handover.paused)
        if self._budget is not None:  # a reload is no load
            self._budget.spend(microseconds(handover.budget_spent))
        for ticket in (*handover.served, *handover.loading, *handover.waiting):
            self._limits.force(ticket.model)
        for ticket in (*handover.served, *handover.loading):
            self._jobs[ticket.number] = ticket
        self._loading = {ticket.number for ticket in handover.loading}
        for ticket in handover.waiting:
            self._lobby.add(ticket)
        gone = [ticket for ticket in handover.waiting if ticket.model not in self._models]
        refused = [self._refuse_waiting(ticket, UnknownModel()) for ticket in gone]
        return [*refused, *self._take_over_loads(handover, facts)]

    def _take_over_loads(self, handover: Handover, facts: Facts) -> list[Decision]:
        """Go on with the loads that may, and pick; with an unclaimed one if the pick leaves it alone."""
        loads = replan(handover, self._models, facts, self._make_room, self._protected)
        alone = not self._jobs and len(loads.unclaimed) == 1
        kept = loads.unclaimed if alone else loads.unclaimed & self._lasting(facts)
        self._unclaimed = kept
        picked: list[Decision] = []
        for ticket, _ in loads.refused:
            picked += self._free(ticket, facts)
        if handover.served or loads.loading:  # the box stays taken, and nobody is picked who would find out
            picked += self._turn_away(facts)
        picked += self._pick(facts)
        decisions: list[Decision] = [Refuse(ticket, refusal) for ticket, refusal in loads.refused]
        if ended := loads.ended | (loads.unclaimed - kept):
            decisions.append(Stop(ended))
        resumed = [Resume(model, frozenset()) for model in sorted(kept - _ended_by(picked))]
        return [*decisions, *loads.claimed, *resumed, *picked]

    def _refuse_if_failing(self, model: str, facts: Facts) -> list[Decision]:
        """Refuse everybody who waits for a closed model, each with an error of its own to raise."""
        decisions: list[Decision] = []
        for ticket in self._lobby.of(model):
            failing = self._backoff.refusal(model, facts.now)
            if failing is not None:
                decisions.append(self._refuse_waiting(ticket, failing))
        return decisions

    def _refuse_waiting(self, ticket: Ticket, refusal: Refusal) -> Refuse:
        self._lobby.remove(ticket)
        self._limits.give_back(ticket.model)
        return Refuse(ticket, refusal)

    def _turn_away(self, facts: Facts) -> list[Decision]:
        """Refuse everybody who waits and would have to evict a protected model now."""
        if not self._protected:
            return []
        refusals = ((ticket, self._held_off(ticket, facts)) for ticket in tuple(self._waiting))
        return [self._refuse_waiting(ticket, refusal) for ticket, refusal in refusals if refusal]

    def _free(self, job: Ticket, facts: Facts) -> Sequence[Decision]:
        self._limits.give_back(job.model)
        del self._jobs[job.number]
        self._loading.discard(job.number)
        return self._pick(facts)

    def _pick(self, facts: Facts) -> Sequence[Decision]:
        """Dispatch the best-scoring ticket if the box is free, or takes another of what it does."""
        if self._jobs:
            return self._widen(facts) if self._width else ()
        if self._closed or not self._waiting:
            return ()
        resident = self._resident_models(facts)
        choice = best(self._waiting, resident)
        if choice.ticket.model not in resident:
            if self._protected and self._held_off(choice.ticket, facts):
                return (*self._turn_away(facts), *self._pick(facts))
            if self._budget is not None:
                choice = self._before_swap(choice, resident, facts, self._budget)
        self._waiting.remove(choice.ticket)
        decisions = self._dispatch(choice, facts, resident=choice.ticket.model in resident)
        return (*decisions, *self._widen(facts)) if self._width else decisions

    def _before_swap(self, due: Choice, resident: frozenset[str], facts: Facts, budget: SwapBudget) -> Choice:
        """Return who goes before the one whose turn has come and who needs a swap; himself if nobody may."""
        other = before_swap(due.ticket.model, self._waiting, resident, facts, self._make_room, budget)
        if other is None:
            return due
        budget.spend(other.cost_us)
        return other

    def _widen(self, facts: Facts) -> Sequence[Decision]:
        """Let more of the running model's tickets in beside its jobs, while each is the next best of all."""
        decisions: list[Decision] = []
        while not self._closed and self._waiting and (model := self._takes_more(facts)):
            choice = best(self._waiting, self._resident_models(facts))
            if choice.ticket.model != model:
                break  # whoever is better is not overtaken, and waits for all of these jobs to end
            self._waiting.remove(choice.ticket)
            decisions += self._dispatch(choice, facts, resident=True)
        return decisions

    def _dispatch(self, choice: Choice, facts: Facts, *, resident: bool) -> Sequence[Decision]:
        """Give the box to this ticket."""
        ticket = choice.ticket
        verdict = verdict_of(choice, self._formula, facts, resident=resident)
        self._jobs[ticket.number] = ticket
        if resident:
            ended = self._unwanted(facts) if self._unclaimed else None
            decisions = (Dispatch(ticket, verdict), Serve(ticket))
            return (Stop(ended), *decisions) if ended else decisions
        self._loading.add(ticket.number)
        return (Dispatch(ticket, verdict), *self._load(ticket.model, facts))

    def _load(self, model: str, facts: Facts) -> Sequence[Decision]:
        """Join an unclaimed load if it is this model's; otherwise start one, ending the others."""
        joined, self._unclaimed = model in self._unclaimed, self._unclaimed - {model}
        ended = self._unwanted(facts)
        if joined:
            return (Stop(ended),) if ended else ()
        if self._budget is not None:
            self._budget.renew()
        evict = self._make_room(model, facts.running) | ended
        self._unclaimed -= evict
        return (Load(model, evict),)

    def _unwanted(self, facts: Facts) -> frozenset[str]:
        """Forget the loads that nobody claims, now that the box has another job; return those to be ended."""
        under_way = self._unclaimed - facts.ready
        self._unclaimed = under_way & self._lasting(facts)
        return under_way - self._unclaimed

    def _lasting(self, facts: Facts) -> frozenset[str]:
        """Return the models that are loaded to the end: protected ones whose child runs already."""
        return self._protected & facts.running


def _ended_by(decisions: Sequence[Decision]) -> frozenset[str]:
    """Return the models that these decisions stop."""
    stops = (one.models for one in decisions if isinstance(one, Stop))
    evictions = (one.evict for one in decisions if isinstance(one, Load))
    return frozenset[str]().union(*stops, *evictions)
