"""llama-swap's own scheduler: one queue, several models at once where the planner allows it.

Pure, like its sibling.  Its one change is that the caller's priority is added
to the model's configured one.  A ready model that need not evict anybody
serves at once and past the queue; models with requests in flight are never
evicted; several requests for a loading model share its load.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Never

from llamaswap.config.model import DEFAULT_CONCURRENCY_LIMIT, ModelConfig
from llamaswap.errors import (
    LoadRefused,
    ModelUnloaded,
    NeedsSerial,
    Refusal,
    ShuttingDown,
    TooManyRequests,
    UnknownModel,
)
from llamaswap.scheduling.fifo_queue import FifoQueue
from llamaswap.scheduling.forecast import Job, Planned
from llamaswap.scheduling.guarding import protected_models, turned_away
from llamaswap.scheduling.limits import ConcurrencyLimits
from llamaswap.scheduling.replanning import replan
from llamaswap.scheduling.score import waited_us
from llamaswap.scheduling.swaps import Swap, Swaps
from llamaswap.scheduling.vocabulary import (
    Band,
    Decision,
    Dispatch,
    Facts,
    Handover,
    Load,
    MakeRoom,
    QueueView,
    Refuse,
    Resume,
    Serve,
    Stop,
    Ticket,
    Verdict,
    band_of,
)


class FifoScheduler:
    """Arrival order within equal priorities; as many models at once as the planner allows.

    Args:
        priorities: points per real model id, added to the caller's.
        models: every local model; a model that sets no limit has 10 slots.
        make_room: the eviction planner.
        router: its name, for messages.
    """

    bypass_when_resident = False

    def __init__(
        self,
        priorities: Mapping[str, int],
        models: Mapping[str, ModelConfig],
        make_room: MakeRoom,
        router: str = "group",
    ) -> None:
        self._models = models
        self._make_room = make_room
        self._router = router
        self._protected = protected_models(models)
        self._limits = ConcurrencyLimits(models, default=DEFAULT_CONCURRENCY_LIMIT)
        self._queue = FifoQueue(priorities)
        self._swaps = Swaps()
        self._served: dict[int, Ticket] = {}
        self._in_flight: Counter[str] = Counter()
        self._closed = False

    def arrived(self, ticket: Ticket, facts: Facts) -> Sequence[Decision]:
        """Refuse, join a load, serve, start a load, or let the ticket wait."""
        if self._closed:
            return (Refuse(ticket, ShuttingDown()),)
        if not self._limits.take(ticket.model):
            return (Refuse(ticket, TooManyRequests()),)
        paused = self._queue.paused and self._queue.stands(ticket)
        decisions = None if paused else self._try(ticket, facts)
        if decisions is None:
            self._queue.add(ticket)
            return ()
        return decisions

    def cancelled(self, ticket: Ticket, facts: Facts) -> Sequence[Decision]:
        """Forget the ticket; a load whose waiters all left goes on and the model stays."""
        if ticket.number in self._served:
            return self.released(ticket, facts)
        if not self._queue.remove(ticket) and not self._swaps.leave(ticket):
            return ()
        self._limits.give_back(ticket.model)
        return ()

    def loaded(self, model: str, facts: Facts) -> Sequence[Decision]:
        """Serve everybody who waited for this load, then look at the queue again."""
        served: list[Decision] = [self._serve(ticket) for ticket in self._swaps.end(model)]
        return served + self._drain(facts)

    def load_failed(self, model: str, why: str, output: Sequence[str], facts: Facts) -> Sequence[Decision]:
        """Refuse everybody who waited for this load, then look at the queue again."""
        refused = [self._refuse(ticket, LoadRefused(why, output)) for ticket in self._swaps.end(model)]
        return refused + self._drain(facts)

    def released(self, ticket: Ticket, facts: Facts) -> Sequence[Decision]:
        """Give the slot back; when the model's last request ends, look at the queue again."""
        if self._served.pop(ticket.number, None) is None:
            return ()
        self._limits.give_back(ticket.model)
        self._in_flight[ticket.model] -= 1
        if self._in_flight[ticket.model]:
            return ()
        del self._in_flight[ticket.model]
        return self._drain(facts)

    def unloaded(self, models: frozenset[str], facts: Facts) -> Sequence[Decision]:
        """Fail everybody who waits for one of these models, in the queue or for its load."""
        gone = [ticket for ticket in self._queue if ticket.model in models]
        self._queue.leave([ticket for ticket in self._queue if ticket.model not in models])
        for model in models:
            gone += self._swaps.end(model)
        return [self._refuse(ticket, ModelUnloaded(self._router)) for ticket in gone] + self._drain(facts)

    def closing(self, facts: Facts) -> Sequence[Decision]:
        """Refuse everybody who waits, for a load too; requests being served keep their grace."""
        self._closed = True
        waiting = self._queue.take_all()
        for model in tuple(self._swaps):
            waiting += self._swaps.end(model)
        return [self._refuse(ticket, ShuttingDown()) for ticket in waiting]

    @property
    def paused(self) -> frozenset[Band]:
        """The bands of which nobody is dispatched."""
        return self._queue.paused

    def pause(self, bands: frozenset[Band], facts: Facts) -> Sequence[Decision]:
        """Let nobody of these bands go on any more; who loads or is served does."""
        self._queue.paused |= bands
        return ()

    def resume(self, bands: frozenset[Band], facts: Facts) -> Sequence[Decision]:
        """Let these bands go on, and look at the queue again."""
        self._queue.paused -= bands
        return self._drain(facts)

    def reprioritise(self, ticket: Ticket, priority: int, facts: Facts) -> tuple[Ticket, Sequence[Decision]]:
        """Move a waiting ticket in the queue, and look at it again; KeyError if it does not wait there."""
        other = self._queue.reprioritise(ticket, priority)
        return other, self._drain(facts)

    def hand_over(self) -> Handover:
        """Give the queue, the loads under way and what is being served to another scheduler."""
        return Handover(
            waiting=tuple(sorted(self._queue, key=lambda ticket: ticket.number)),
            loading=self._swaps.waiters(),
            served=tuple(self._served.values()),
            unclaimed=frozenset(model for model, swap in self._swaps.items() if not swap.waiters),
            paused=self._queue.paused,
        )

    def take_over(self, handover: Handover, facts: Facts) -> Sequence[Decision]:
        """Go on with the loads under way and look at the whole queue again."""
        self._queue.paused = handover.paused
        for ticket in (*handover.served, *handover.loading, *handover.waiting):
            self._limits.force(ticket.model)
        for ticket in handover.served:
            self._serve(ticket)
        for ticket in handover.waiting:
            if ticket.model in self._models:
                self._queue.add(ticket)
        gone = [ticket for ticket in handover.waiting if ticket.model not in self._models]
        decisions = self._take_over_loads(handover, facts)
        decisions += [self._refuse(ticket, UnknownModel()) for ticket in gone]
        return decisions + self._drain(facts)

    def _take_over_loads(self, handover: Handover, facts: Facts) -> list[Decision]:
        """Go on with the loads that may."""
        loads = replan(handover, self._models, facts, self._make_room, self._protected)
        resumed = [*loads.claimed, *(Resume(model, frozenset()) for model in sorted(loads.unclaimed))]
        for load in resumed:
            self._swaps[load.model] = Swap(load.evict)
        for ticket in loads.loading:
            self._swaps.join(ticket)
        decisions = [self._refuse(ticket, refusal) for ticket, refusal in loads.refused]
        if loads.ended:
            decisions.append(Stop(loads.ended))
        return decisions + resumed

    def resident(self, model: str, facts: Facts) -> bool:
        """Return whether the model could serve now without a start and without an eviction."""
        return model in facts.ready and self.fits(model, facts)

    def fits(self, model: str, facts: Facts) -> bool:
        """Return whether the model may run beside what runs or loads now."""
        if self._make_room(model, self._running(model, facts)):
            return False
        return not self._swaps or not self._swaps.evicts(model)

    def wanted(self, model: str) -> bool:
        """Return whether a ticket for this model may go, loads or runs; one of a paused band may not."""
        if model in self._swaps or self._in_flight[model]:
            return True
        return any(ticket.model == model and not self._queue.stands(ticket) for ticket in self._queue)

    def position(self, ticket: Ticket, facts: Facts) -> int | None:
        """Return the place of a waiting ticket in the queue; None if it does not wait there."""
        return self._queue.position(ticket)

    def waiting(self) -> int:
        """Return how many tickets wait in the queue; those who share a load do not."""
        return len(self._queue)

    def ticket(self, number: int) -> Ticket | None:
        """Return the waiting ticket of this number."""
        return self._queue.ticket(number)

    def plan(self, jobs: Sequence[Job], facts: Facts, skip: int = 0) -> Iterator[Planned]:
        """Walk the queue; nobody can say when somebody goes, since several do at once."""
        for ticket in self._queue.in_order()[skip:]:
            yield Planned(ticket=ticket, swap=not self.resident(ticket.model, facts), eta=None, load=None)

    def eta(self, ticket: Ticket, jobs: Sequence[Job], facts: Facts) -> None:
        """Return None: as for `plan`."""

    def terms(self, ticket: Ticket, facts: Facts) -> None:
        """Return None: nothing is scored."""

    def explain(self, ticket: Ticket, facts: Facts, most: int = 100) -> Never:
        """Raise `NeedsSerial`: there are no reasons but the order."""
        raise NeedsSerial

    def band(self, ticket: Ticket) -> Band:
        """Return the band of the sum of both priorities."""
        return self._queue.band(ticket)

    def waiting_metadata(self, ticket: Ticket, now: float) -> Mapping[str, str]:
        """Return nothing: llama-swap tells a priority only of requests that were granted."""
        return {}

    def view(self, now: float) -> QueueView:
        """Return depth and oldest wait of each band, and every dispatched ticket."""
        return QueueView(
            bands=self._queue.band_view(now),
            jobs=(*self._served.values(), *self._swaps.waiters()),
            paused=self._queue.paused,
        )

    def _running(self, model: str, facts: Facts) -> frozenset[str]:
        """Return what the planner counts as running: children, and the targets of other loads under way.

        A child of `model` itself stays in: a planner may ask whether it runs already.
        """
        return facts.running | (self._swaps.keys() - {model}) if self._swaps else facts.running

    def _try(self, ticket: Ticket, facts: Facts) -> list[Decision] | None:
        """Return what lets this ticket go on now, or refuses it; None if it has to wait in the queue."""
        model = ticket.model
        dispatch = Dispatch(ticket, self._verdict(ticket, facts))
        if model in self._swaps:
            self._swaps.join(ticket)
            return [dispatch]
        if self.resident(model, facts):
            return [dispatch, self._serve(ticket)]
        running = self._running(model, facts)
        if self._protected and (
            refusal := turned_away(ticket, running, facts.stopping, self._protected, self._make_room)
        ):
            return [self._refuse(ticket, refusal)]
        evict = self._make_room(model, running)
        if self._swaps.collides(model, evict) or any(self._in_flight[other] for other in evict):
            return None
        self._swaps[model] = Swap(evict, [ticket])
        return [dispatch, Load(model, evict)]

    def _drain(self, facts: Facts) -> list[Decision]:
        """Walk the queue in order and let go whoever can go."""
        if self._closed:
            return []
        decisions: list[Decision] = []
        left: list[Ticket] = []
        for ticket in self._queue.take_all():
            paused = self._queue.paused and self._queue.stands(ticket)
            moved = None if paused else self._try(ticket, facts)
            if moved is None:
                left.append(ticket)
            else:
                decisions += moved
        self._queue.leave(left)
        return decisions

    def _serve(self, ticket: Ticket) -> Serve:
        self._served[ticket.number] = ticket
        self._in_flight[ticket.model] += 1
        return Serve(ticket)

    def _refuse(self, ticket: Ticket, refusal: Refusal) -> Decision:
        self._limits.give_back(ticket.model)
        return Refuse(ticket, refusal)

    def _verdict(self, ticket: Ticket, facts: Facts) -> Verdict:
        priority = self._queue.priority(ticket)
        return Verdict(priority=priority, band=band_of(priority), waited_us=waited_us(ticket, facts.now))
