"""The waiting room: who waits, and who would go under which formula.

One pair of heaps per model makes a pick O(models + log n), whatever the number
of waiting tickets: within one model affinity is the same for all, so only the
heads can win.  A ticket that leaves is dropped from its heap when it surfaces.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush

from llamaswap.scheduling.score import Formula
from llamaswap.scheduling.vocabulary import Band, BandView, Ticket, band_of

_Heap = list[tuple[int, int]]  # (minus the rank, arrival number): the smallest goes first


class _ModelQueue:
    """The waiting tickets of one model, in the order of the full formula and of priority alone."""

    __slots__ = ("_order", "by_key", "by_priority", "live")

    def __init__(self) -> None:
        self.by_key: _Heap = []
        self.by_priority: _Heap = []
        self.live: dict[int, Ticket] = {}
        self._order: list[tuple[int, int]] | None = None  # the live of `by_key`, sorted; once somebody asked

    def add(self, ticket: Ticket, key: int) -> None:
        heappush(self.by_key, (-key, ticket.number))
        heappush(self.by_priority, (-ticket.priority, ticket.number))
        self.live[ticket.number] = ticket
        if self._order is not None:
            insort(self._order, (-key, ticket.number))

    def remove(self, ticket: Ticket, formula: Formula) -> None:
        del self.live[ticket.number]
        if self._order is not None:
            del self._order[bisect_left(self._order, (-formula.key(ticket), ticket.number))]
        for heap in (self.by_key, self.by_priority):
            if len(heap) > 64 and len(heap) > 2 * len(self.live):
                heap[:] = [item for item in heap if item[1] in self.live]
                heapify(heap)

    def before(self, rank: int, number: int) -> int:
        """Return how many live tickets have a better rank by the full formula, or came first of equals."""
        if self._order is None:
            self._order = sorted(item for item in self.by_key if item[1] in self.live)
        return bisect_left(self._order, (-rank, number))

    def head(self, heap: _Heap) -> tuple[int, int]:
        """Return (rank, minus the number) of the first live ticket; the greatest across models wins."""
        while heap[0][1] not in self.live:
            heappop(heap)
        rank, number = heap[0]
        return -rank, -number


class WaitingRoom:
    """All tickets that wait for one box.

    Args:
        formula: the score; it is fixed for the room's life, since the heaps are ordered by it.
    """

    def __init__(self, formula: Formula) -> None:
        self._formula = formula
        self._queues: dict[str, _ModelQueue] = {}
        self._bands: dict[Band, dict[int, Ticket]] = {band: {} for band in Band}
        self._size = 0

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
        queue.add(ticket, self._formula.key(ticket))
        self._bands[band_of(ticket.priority)][ticket.number] = ticket

    def remove(self, ticket: Ticket) -> None:
        """Take a waiting ticket away; KeyError if it does not wait."""
        del self._bands[band_of(ticket.priority)][ticket.number]
        self._size -= 1
        queue = self._queues[ticket.model]
        queue.remove(ticket, self._formula)
        if not queue.live:
            del self._queues[ticket.model]

    def models(self) -> tuple[str, ...]:
        """Return the models that somebody waits for."""
        return tuple(self._queues)

    def of(self, model: str) -> tuple[Ticket, ...]:
        """Return the tickets that wait for one model, in arrival order."""
        queue = self._queues.get(model)
        return tuple(queue.live.values()) if queue else ()

    def count(self, model: str) -> int:
        """Return how many tickets wait for one model."""
        queue = self._queues.get(model)
        return len(queue.live) if queue else 0

    def best(self, resident: frozenset[str]) -> Ticket:
        """Return the ticket that the full formula puts first; LookupError when nobody waits."""
        bonus = self._formula.affinity_key()
        return self._first(lambda queue: queue.by_key, resident, bonus)

    def best_without_affinity(self) -> Ticket:
        """Return the ticket that priority and aging alone would put first."""
        return self._first(lambda queue: queue.by_key, frozenset(), 0)

    def best_without_aging(self, resident: frozenset[str]) -> Ticket:
        """Return the ticket that priority and affinity alone would put first."""
        return self._first(lambda queue: queue.by_priority, resident, self._formula.bonus)

    def position(self, ticket: Ticket, resident: frozenset[str]) -> int:
        """Return 1 + how many waiting tickets the full formula puts before this one; O(models * log n)."""
        bonus = self._formula.affinity_key()
        own = self._formula.key(ticket) + (bonus if ticket.model in resident else 0)
        return 1 + sum(
            queue.before(own - bonus if model in resident else own, ticket.number)
            for model, queue in self._queues.items()
        )

    def band_view(self, now: float) -> dict[Band, BandView]:
        """Return depth and oldest wait of each band; arrival order is the order of the dicts."""
        return {band: _look(tickets, now) for band, tickets in self._bands.items()}

    def _first(self, heap_of: Callable[[_ModelQueue], _Heap], resident: frozenset[str], bonus: int) -> Ticket:
        best: tuple[int, int] | None = None
        best_queue: _ModelQueue | None = None
        for model, queue in self._queues.items():
            rank, order = queue.head(heap_of(queue))
            candidate = (rank + bonus if model in resident else rank, order)
            if best is None or candidate > best:
                best, best_queue = candidate, queue
        if best is None or best_queue is None:
            raise LookupError("nobody waits")
        return best_queue.live[-best[1]]


def _look(tickets: dict[int, Ticket], now: float) -> BandView:
    if not tickets:
        return BandView(depth=0, oldest_wait=0.0)
    oldest = next(iter(tickets.values()))
    return BandView(depth=len(tickets), oldest_wait=max(0.0, now - oldest.arrived))
