"""Loads side by side: who waits for which, and which cross."""

from __future__ import annotations

from llamaswap.scheduling.swaps import Swap, Swaps
from llamaswap.scheduling.vocabulary import Ticket


def ticket(number: int, model: str = "A", priority: int = 0) -> Ticket:
    return Ticket(number=number, model=model, priority=priority, arrived=0.0)


def test_who_joins_waits_for_the_load_until_it_ends() -> None:
    swaps = Swaps({"A": Swap(frozenset("B"), [ticket(1)]), "C": Swap(frozenset())})

    swaps.join(ticket(2))
    swaps.join(ticket(3, "C"))

    assert swaps.waiters() == (ticket(1), ticket(2), ticket(3, "C"))
    assert swaps.end("A") == [ticket(1), ticket(2)]
    assert swaps.end("A") == []
    assert swaps.keys() == {"C"}


def test_who_leaves_is_known_by_his_number() -> None:
    swaps = Swaps({"A": Swap(frozenset())})
    swaps.join(ticket(1, priority=5))

    assert swaps.leave(ticket(1, priority=0))
    assert not swaps.leave(ticket(1))
    assert not swaps.leave(ticket(2, "B"))
    assert swaps["A"].waiters == []


def test_loads_cross_when_one_ends_the_other_or_both_end_the_same() -> None:
    swaps = Swaps({"A": Swap(frozenset("B"))})

    assert swaps.collides("B", frozenset())
    assert swaps.collides("C", frozenset("A"))
    assert swaps.collides("C", frozenset("B"))
    assert not swaps.collides("C", frozenset("D"))
    assert swaps.evicts("B")
    assert not swaps.evicts("A")
