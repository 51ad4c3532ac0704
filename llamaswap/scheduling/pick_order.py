"""In which order the waiting tickets will go if nobody else comes.

The order depends on no duration: keys are constants, and what is resident
changes only when a ticket brings its model along.  So it can be walked without
a clock, one pick at a time, in O(log models) for most picks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush

import msgspec

from llamaswap.scheduling.budget import SwapBudget
from llamaswap.scheduling.vocabulary import Facts, MakeRoom

Lane = Sequence[tuple[int, int]]  # (minus the key without affinity, number), best first


class Pick(msgspec.Struct, frozen=True):
    """One ticket in its turn."""

    number: int
    model: str
    swap: bool  # a load begins: its model is not resident
    start: bool  # and takes time: its model is not even ready, others only have to go
    budget: bool  # goes before a better one, which needs a load


class Procession:
    """Makes the picks that the scheduler will make.

    Args:
        lanes: who waits for each model; not to change while this is walked.
        bonus_key: what affinity adds to a key.
        make_room: the eviction planner.
        budget: what is left of the swap budget; it is spent on the way.
        facts: what runs and what is ready.
        loading: models of jobs that load now; they will be ready when the first pick is made.
    """

    def __init__(
        self,
        lanes: Mapping[str, Lane],
        bonus_key: int,
        make_room: MakeRoom,
        budget: SwapBudget,
        facts: Facts,
        loading: Iterable[str] = (),
    ) -> None:
        self._lanes = lanes
        self._at = dict.fromkeys(lanes, 0)
        self._bonus_key = bonus_key
        self._make_room = make_room
        self._budget = budget
        self._running, self._ready = facts.running, facts.ready
        self._near: dict[str, tuple[int, int]] = {}  # the heads of the lanes whose models are resident
        for model in loading:
            self._bring(model)
        self._far = [(*lane[0], model) for model, lane in lanes.items() if lane]  # all heads, and stale ones
        heapify(self._far)
        self._settle()

    def __iter__(self) -> Iterator[Pick]:
        return self

    def __next__(self) -> Pick:
        far = self._first_far()
        near = min(self._near, key=self._near.__getitem__) if self._near else None
        if far is None and near is None:
            raise StopIteration
        if near is not None and (far is None or self._beats(near, far)):
            return self._take(near)
        assert far is not None
        return self._by_budget(far[2]) or self._swap(far[2])

    def passed(self, model: str) -> int:
        """Return how many tickets of a model have gone."""
        return self._at[model]

    def _beats(self, near: str, far: tuple[int, int, str]) -> bool:
        rank, number = self._near[near]
        return (rank - self._bonus_key, number) < (far[0], far[1])

    def _first_far(self) -> tuple[int, int, str] | None:
        """Return the best head of all models that are not resident."""
        while self._far:
            head = self._far[0]
            if head[2] not in self._near and self._head(head[2]) == head[:2]:
                return head
            heappop(self._far)
        return None

    def _head(self, model: str) -> tuple[int, int] | None:
        lane, at = self._lanes[model], self._at[model]
        return lane[at] if at < len(lane) else None

    def _take(self, model: str, *, budget: bool = False) -> Pick:
        """Let the first ticket of a resident model go."""
        number = self._near[model][1]
        self._at[model] += 1
        head = self._head(model)
        if head is None:
            del self._near[model]
        else:
            self._near[model] = head
        return Pick(number, model, False, False, budget)

    def _by_budget(self, best: str) -> Pick | None:
        """Let a ticket go whose model the load of `best` would evict, if the budget allows it."""
        if self._budget.left <= 0.0 or not self._near:
            return None
        leaving = self._make_room(best, self._running) & self._near.keys()
        affordable = self._budget.affordable(leaving)
        if not affordable:
            return None
        model = min(affordable, key=self._near.__getitem__)
        self._budget.spend(affordable[model])
        return self._take(model, budget=True)

    def _swap(self, model: str) -> Pick:
        """Let the first ticket of a model go that must be loaded for it."""
        number = self._lanes[model][self._at[model]][1]
        start = model not in self._ready
        self._at[model] += 1
        self._bring(model)
        self._budget.renew()
        self._settle()
        return Pick(number, model, True, start, False)

    def _bring(self, model: str) -> None:
        evicted = self._make_room(model, self._running)
        self._running = (self._running - evicted) | {model}
        self._ready = (self._ready - evicted) | {model}

    def _settle(self) -> None:
        """See anew which models are resident: something was loaded."""
        before = self._near
        self._near = {}
        for model in self._ready & self._lanes.keys():
            head = self._head(model)
            if head is not None and not self._make_room(model, self._running):
                self._near[model] = head
        for model in before.keys() - self._near.keys():
            head = self._head(model)
            if head is not None:
                heappush(self._far, (*head, model))
