"""llama-swap's own scheduler: one queue, several models at once where the planner allows it.

Pure, like its sibling.  Its one change is that the caller's priority is added
to the model's configured one.  A ready model that need not evict anybody
serves at once and past the queue; models with requests in flight are never
evicted; several requests for a loading model share its load.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from llamaswap.config.model import DEFAULT_CONCURRENCY_LIMIT, ModelConfig
from llamaswap.errors import LoadRefused, ModelUnloaded, Refusal, ShuttingDown, TooManyRequests, UnknownModel
from llamaswap.scheduling.limits import ConcurrencyLimits
from llamaswap.scheduling.score import waited_us
from llamaswap.scheduling.vocabulary import (
    Band,
    BandView,
    Decision,
    Dispatch,
    Facts,
    Handover,
    Load,
    MakeRoom,
    QueueView,
    Refuse,
    Serve,
    Ticket,
    Verdict,
    band_of,
)


@dataclass(slots=True)
class _Swap:
    """A load under way, and who waits for it."""

    evict: frozenset[str]
    waiters: list[Ticket] = field(default_factory=list)


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
        self._priorities = priorities
        self._models = models
        self._make_room = make_room
        self._router = router
        self._limits = ConcurrencyLimits(models, default=DEFAULT_CONCURRENCY_LIMIT)
        self._queue: list[Ticket] = []  # in the order of `_rank`
        self._swaps: dict[str, _Swap] = {}
        self._served: dict[int, Ticket] = {}
        self._in_flight: Counter[str] = Counter()
        self._closed = False

    def arrived(self, ticket: Ticket, facts: Facts) -> Sequence[Decision]:
        """Refuse, join a load, serve, start a load, or let the ticket wait."""
        if self._closed:
            return (Refuse(ticket, ShuttingDown()),)
        if not self._limits.take(ticket.model):
            return (Refuse(ticket, TooManyRequests()),)
        decisions = self._try(ticket, facts)
        if decisions is None:
            insort(self._queue, ticket, key=self._rank)
            return ()
        return decisions

    def cancelled(self, ticket: Ticket, facts: Facts) -> Sequence[Decision]:
        """Forget the ticket; a load whose waiters all left goes on and the model stays."""
        if ticket.number in self._served:
            return self.released(ticket, facts)
        swap, place = self._swaps.get(ticket.model), self._place(ticket)
        if place is not None:
            del self._queue[place]
        elif swap is not None and ticket in swap.waiters:
            swap.waiters.remove(ticket)
        else:
            return ()
        self._limits.give_back(ticket.model)
        return ()

    def loaded(self, model: str, facts: Facts) -> Sequence[Decision]:
        """Serve everybody who waited for this load, then look at the queue again."""
        served: list[Decision] = [self._serve(ticket) for ticket in self._end_swap(model)]
        return served + self._drain(facts)

    def load_failed(self, model: str, why: str, output: Sequence[str], facts: Facts) -> Sequence[Decision]:
        """Refuse everybody who waited for this load, then look at the queue again."""
        refused = [self._refuse(ticket, LoadRefused(why, output)) for ticket in self._end_swap(model)]
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
        self._queue = [ticket for ticket in self._queue if ticket.model not in models]
        for model in models:
            gone += self._end_swap(model)
        return [self._refuse(ticket, ModelUnloaded(self._router)) for ticket in gone] + self._drain(facts)

    def closing(self, facts: Facts) -> Sequence[Decision]:
        """Refuse everybody who waits, for a load too; requests being served keep their grace."""
        self._closed = True
        waiting, self._queue = self._queue, []
        for model in tuple(self._swaps):
            waiting += self._end_swap(model)
        return [self._refuse(ticket, ShuttingDown()) for ticket in waiting]

    def hand_over(self) -> Handover:
        """Give the queue, the loads under way and what is being served to another scheduler."""
        loading = tuple(ticket for swap in self._swaps.values() for ticket in swap.waiters)
        return Handover(
            waiting=tuple(sorted(self._queue, key=lambda ticket: ticket.number)),
            loading=loading,
            served=tuple(self._served.values()),
            unclaimed=frozenset(model for model, swap in self._swaps.items() if not swap.waiters),
        )

    def take_over(self, handover: Handover, facts: Facts) -> Sequence[Decision]:
        """Go on with the loads under way and look at the whole queue again."""
        for ticket in (*handover.served, *handover.loading, *handover.waiting):
            self._limits.force(ticket.model)
        for ticket in handover.served:
            self._serve(ticket)
        for model in handover.unclaimed & self._models.keys():
            self._swaps[model] = _Swap(frozenset())
        unknown = [t for t in (*handover.loading, *handover.waiting) if t.model not in self._models]
        for ticket in handover.loading:
            if ticket.model in self._models:
                self._swaps.setdefault(ticket.model, _Swap(frozenset())).waiters.append(ticket)
        known = [ticket for ticket in handover.waiting if ticket.model in self._models]
        self._queue = sorted(known, key=self._rank)
        return [self._refuse(ticket, UnknownModel()) for ticket in unknown] + self._drain(facts)

    def resident(self, model: str, facts: Facts) -> bool:
        """Return whether the model could serve now without a start and without an eviction."""
        if model not in facts.ready or self._make_room(model, self._running(model, facts)):
            return False
        return not self._swaps or not any(model in swap.evict for swap in self._swaps.values())

    def wanted(self, model: str) -> bool:
        """Return whether a ticket for this model waits, loads or runs."""
        if model in self._swaps or self._in_flight[model]:
            return True
        return any(ticket.model == model for ticket in self._queue)

    def position(self, ticket: Ticket, facts: Facts) -> int | None:
        """Return the place of a waiting ticket in the queue; None if it does not wait there."""
        place = self._place(ticket)
        return None if place is None else place + 1

    def band(self, ticket: Ticket) -> Band:
        """Return the band of the sum of both priorities."""
        return band_of(self._priority(ticket))

    def waiting_metadata(self, ticket: Ticket, now: float) -> Mapping[str, str]:
        """Return nothing: llama-swap tells a priority only of requests that were granted."""
        return {}

    def view(self, now: float) -> QueueView:
        """Return depth and oldest wait of each band, and every dispatched ticket."""
        loading = tuple(ticket for swap in self._swaps.values() for ticket in swap.waiters)
        return QueueView(bands=self._bands(now), jobs=(*self._served.values(), *loading))

    def _end_swap(self, model: str) -> list[Ticket]:
        """Forget the load of a model, if there is one, and return who waited for it."""
        swap = self._swaps.pop(model, None)
        return swap.waiters if swap else []

    def _bands(self, now: float) -> dict[Band, BandView]:
        waits: dict[Band, list[float]] = {band: [] for band in Band}
        for ticket in self._queue:
            waits[band_of(self._priority(ticket))].append(max(0.0, now - ticket.arrived))
        return {band: BandView(depth=len(w), oldest_wait=max(w, default=0.0)) for band, w in waits.items()}

    def _priority(self, ticket: Ticket) -> int:
        return self._priorities.get(ticket.model, 0) + ticket.priority

    def _rank(self, ticket: Ticket) -> tuple[int, int]:
        return (-self._priority(ticket), ticket.number)

    def _running(self, model: str, facts: Facts) -> frozenset[str]:
        """Return what the planner counts as running: children, and the targets of other loads under way.

        A child of `model` itself stays in: a planner may ask whether it runs already.
        """
        return facts.running | (self._swaps.keys() - {model}) if self._swaps else facts.running

    def _place(self, ticket: Ticket) -> int | None:
        """Return the index of a ticket in the queue, or None if it is not there."""
        place = bisect_left(self._queue, self._rank(ticket), key=self._rank)
        there = place < len(self._queue) and self._queue[place].number == ticket.number
        return place if there else None

    def _try(self, ticket: Ticket, facts: Facts) -> list[Decision] | None:
        """Return what lets this ticket go on now, or None if it has to wait in the queue."""
        model = ticket.model
        dispatch = Dispatch(ticket, self._verdict(ticket, facts))
        if model in self._swaps:
            self._swaps[model].waiters.append(ticket)
            return [dispatch]
        if self.resident(model, facts):
            return [dispatch, self._serve(ticket)]
        evict = self._make_room(model, self._running(model, facts))
        if self._collides(model, evict) or any(self._in_flight[other] for other in evict):
            return None
        self._swaps[model] = _Swap(evict, [ticket])
        return [dispatch, Load(model, evict)]

    def _collides(self, model: str, evict: frozenset[str]) -> bool:
        """Return whether loading the model would cross a load that is under way."""
        return any(
            target in evict or model in swap.evict or evict & swap.evict
            for target, swap in self._swaps.items()
        )

    def _drain(self, facts: Facts) -> list[Decision]:
        """Walk the queue in order and let go whoever can go."""
        if self._closed:
            return []
        decisions: list[Decision] = []
        waiting, self._queue = self._queue, []
        for ticket in waiting:
            moved = self._try(ticket, facts)
            if moved is None:
                self._queue.append(ticket)
            else:
                decisions += moved
        return decisions

    def _serve(self, ticket: Ticket) -> Serve:
        self._served[ticket.number] = ticket
        self._in_flight[ticket.model] += 1
        return Serve(ticket)

    def _refuse(self, ticket: Ticket, refusal: Refusal) -> Decision:
        self._limits.give_back(ticket.model)
        return Refuse(ticket, refusal)

    def _verdict(self, ticket: Ticket, facts: Facts) -> Verdict:
        priority = self._priority(ticket)
        return Verdict(priority=priority, band=band_of(priority), waited_us=waited_us(ticket, facts.now))
