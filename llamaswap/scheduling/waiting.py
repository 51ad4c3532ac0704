"""The waiting room: who waits, and who would go under which formula.

One pair of heaps per model makes a pick O(models + log n), whatever the number
of waiting tickets: within one model affinity is the same for all, so only the
heads can win.  A ticket that leaves is dropped from its heap when it surfaces.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush, merge
from itertools import repeat

from llamaswap.scheduling.score import Formula
from llamaswap.scheduling.vocabulary import Band, BandView, Ticket, band_of

_Heap = list[tuple[int, int]]  # (minus the rank, arrival number): the smallest goes first
_Lane = Sequence[tuple[int, int]]  # the same, sorted


class _ModelQueue:
    """The waiting tickets of one model, in the order of the full formula and of priority alone."""

    __slots__ = ("_order", "_order_by_priority", "by_key", "by_priority", "live")

    def __init__(self) -> None:
        self.by_key: _Heap = []
        self.by_priority: _Heap = []
        self.live: dict[int, Ticket] = {}
        self._order: _Heap | None = None  # the live of `by_key`, sorted; once somebody asked
        self._order_by_priority: _Heap | None = None  # likewise

    def add(self, ticket: Ticket, key: int) -> None:
        heappush(self.by_key, (-key, ticket.number))
        heappush(self.by_priority, (-ticket.priority, ticket.number))
        self.live[ticket.number] = ticket
        if self._order is not None:
            insort(self._order, (-key, ticket.number))
        if self._order_by_priority is not None:
            insort(self._order_by_priority, (-ticket.priority, ticket.number))

    def remove(self, ticket: Ticket, formula: Formula) -> None:
        del self.live[ticket.number]
        if self._order is not None:
            del self._order[bisect_left(self._order, (-formula.key(ticket), ticket.number))]
        if self._order_by_priority is not None:
            del self._order_by_priority[
                bisect_left(self._order_by_priority, (-ticket.priority, ticket.number))
            ]
        if len(self.by_key) > 64 and len(self.by_key) > 2 * len(self.live):
            self.tidy()

    def tidy(self) -> None:
        """Drop who left from the heaps: before he comes back, he must not be found there."""
        for heap in (self.by_key, self.by_priority):
            heap[:] = [item for item in heap if item[1] in self.live]
            heapify(heap)

    def order(self) -> _Heap:
        """Return the live ones, first who goes first by the full formula; not to be changed."""
        if self._order is None:
            self._order = self._sorted(self.by_key)
        return self._order

    def order_by_priority(self) -> _Heap:
        """`order` by priority alone."""
        if self._order_by_priority is None:
            self._order_by_priority = self._sorted(self.by_priority)
        return self._order_by_priority

    def head(self, heap: _Heap) -> tuple[int, int]:
        """Return (rank, minus the number) of the first live ticket; the greatest across models wins."""
        while heap[0][1] not in self.live:
            heappop(heap)
        rank, number = heap[0]
        return -rank, -number

    def _sorted(self, heap: _Heap) -> _Heap:
        if len(heap) == len(self.live):  # nobody has left
            return sorted(heap)
        return sorted(item for item in heap if item[1] in self.live)


class WaitingRoom:
    """All tickets that wait for one box.

    Args:
        formula: the score; it is fixed for the room's life, since the heaps are ordered by it.
    """

    def __init__(self, formula: Formula) -> None:
        self.formula = formula
        self._queues: dict[str, _ModelQueue] = {}
        self._bands: dict[Band, dict[int, Ticket]] = {band: {} for band in Band}
        self._size = 0
        self._lanes: dict[str, _Heap] | None = None  # once somebody asked; good for the models there are now
        self._split: tuple[frozenset[str], list[_Lane], list[_Lane]] | None = None  # likewise, see `_sides`

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Ticket]:
        for queue in self._queues.values():
            yield from queue.live.values()

    def __contains__(self, ticket: Ticket) -> bool:
        return ticket.number in self._bands[band_of(ticket.priority)]

    def add(self, ticket: Ticket) -> None:
        """Let a ticket wait."""
        self._size += 1
        queue = self._queues.get(ticket.model)
        if queue is None:
            queue = self._queues[ticket.model] = _ModelQueue()
            self._lanes = self._split = None
        queue.add(ticket, self.formula.key(ticket))
        self._bands[band_of(ticket.priority)][ticket.number] = ticket

    def put_back(self, tickets: Sequence[Ticket]) -> None:
        """`add` some who have waited before, and may be older than others here; O(size of their bands)."""
        for ticket in tickets:
            self.add(ticket)
        for band in {band_of(ticket.priority) for ticket in tickets}:
            self._bands[band] = dict(sorted(self._bands[band].items()))

    def take_out(self, tickets: Sequence[Ticket]) -> None:
        """`remove` some who may come back under the same number; O(all who wait for their models)."""
        for ticket in tickets:
            self.remove(ticket)
        for model in {ticket.model for ticket in tickets} & self._queues.keys():
            self._queues[model].tidy()

    def ticket(self, number: int) -> Ticket | None:
        """Return the waiting ticket of this number, if it waits here."""
        for tickets in self._bands.values():
            if number in tickets:
                return tickets[number]
        return None

    def remove(self, ticket: Ticket) -> None:
        """Take a waiting ticket away; KeyError if it does not wait."""
        del self._bands[band_of(ticket.priority)][ticket.number]
        self._size -= 1
        queue = self._queues[ticket.model]
        queue.remove(ticket, self.formula)
        if not queue.live:
            del self._queues[ticket.model]
            self._lanes = self._split = None

    def of(self, model: str) -> tuple[Ticket, ...]:
        """Return the tickets that wait for one model, in arrival order."""
        queue = self._queues.get(model)
        return tuple(queue.live[number] for number in sorted(queue.live)) if queue else ()

    def of_band(self, band: Band) -> tuple[Ticket, ...]:
        """Return the waiting tickets of one band, in arrival order."""
        return tuple(self._bands[band].values())

    def count(self, model: str) -> int:
        """Return how many tickets wait for one model."""
        queue = self._queues.get(model)
        return len(queue.live) if queue else 0

    def lanes(self) -> Mapping[str, Sequence[tuple[int, int]]]:
        """Return who waits for each model as (minus the key without affinity, number), the first first.

        The sequences are the room's own: they are not to be changed, and change with it.
        """
        if self._lanes is None:
            self._lanes = {model: queue.order() for model, queue in self._queues.items()}
        return self._lanes

    def lanes_by_priority(self) -> Mapping[str, Sequence[tuple[int, int]]]:
        """`lanes` as they would be without aging: (minus the priority, number)."""
        return {model: queue.order_by_priority() for model, queue in self._queues.items()}

    def best(self, resident: frozenset[str]) -> Ticket:
        """Return the ticket that the full formula puts first; LookupError when nobody waits."""
        bonus = self.formula.affinity_key()
        return self._first(self._queues, lambda queue: queue.by_key, resident, bonus)

    def best_of(self, models: Collection[str]) -> Ticket:
        """Return whom the formula puts first of those who wait for equally resident models."""
        queues = {model: self._queues[model] for model in models}
        return self._first(queues, lambda queue: queue.by_key, frozenset(), 0)

    def best_without_affinity(self) -> Ticket:
        """Return the ticket that priority and aging alone would put first."""
        return self._first(self._queues, lambda queue: queue.by_key, frozenset(), 0)

    def best_without_aging(self, resident: frozenset[str]) -> Ticket:
        """Return the ticket that priority and affinity alone would put first."""
        return self._first(self._queues, lambda queue: queue.by_priority, resident, self.formula.bonus)

    def position(self, ticket: Ticket, resident: frozenset[str]) -> int:
        """Return 1 + how many waiting tickets the full formula puts before this one; O(models * log n).

        Asked for each of a hundred tickets that somebody looks at.
        """
        bonus = self.formula.affinity_key()
        rank = -self.formula.key(ticket) - (bonus if ticket.model in resident else 0)
        far, near = self._sides(resident)
        ahead = sum(map(bisect_left, far, repeat((rank, ticket.number))))
        return 1 + ahead + sum(map(bisect_left, near, repeat((rank + bonus, ticket.number))))

    def in_order(self, resident: frozenset[str]) -> Iterator[Ticket]:
        """Yield all who wait, first whom the full formula puts first; O(log models) for each.

        To be used up before anybody comes or goes.
        """
        bonus = self.formula.affinity_key()
        shifted = (
            _shifted(queue, bonus if model in resident else 0) for model, queue in self._queues.items()
        )
        for _, number, queue in merge(*shifted):
            yield queue.live[number]

    def band_view(self, now: float) -> dict[Band, BandView]:
        """Return depth and oldest wait of each band; arrival order is the order of the dicts."""
        return {band: _look(tickets, now) for band, tickets in self._bands.items()}

    def _sides(self, resident: frozenset[str]) -> tuple[list[_Lane], list[_Lane]]:
        """Return the lanes of the models that are not resident, and those of the resident ones."""
        split = self._split
        if split is None or split[0] != resident:
            lanes = self.lanes()
            far = [lane for model, lane in lanes.items() if model not in resident]
            split = self._split = resident, far, [lanes[model] for model in resident & lanes.keys()]
        return split[1], split[2]

    def _first(
        self,
        queues: Mapping[str, _ModelQueue],
        heap_of: Callable[[_ModelQueue], _Heap],
        resident: frozenset[str],
        bonus: int,
    ) -> Ticket:
        best: tuple[int, int] | None = None
        best_queue: _ModelQueue | None = None
        for model, queue in queues.items():
            rank, order = queue.head(heap_of(queue))
            candidate = (rank + bonus if model in resident else rank, order)
            if best is None or candidate > best:
                best, best_queue = candidate, queue
        if best is None or best_queue is None:
            raise LookupError("nobody waits")
        return best_queue.live[-best[1]]


def _shifted(queue: _ModelQueue, bonus: int) -> Iterator[tuple[int, int, _ModelQueue]]:
    """Yield (minus the rank, number, queue) of one model's tickets; no two have the same number."""
    return ((rank - bonus, number, queue) for rank, number in queue.order())


def _look(tickets: dict[int, Ticket], now: float) -> BandView:
    if not tickets:
        return BandView(depth=0, oldest_wait=0.0)
    oldest = next(iter(tickets.values()))
    return BandView(depth=len(tickets), oldest_wait=max(0.0, now - oldest.arrived))
