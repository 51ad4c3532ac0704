"""Counting."""

from __future__ import annotations

from llamaswap.scheduling.vocabulary import Band, Term, Ticket, Verdict
from llamaswap.simulation.results import Fate
from llamaswap.simulation.tally import Tally


def ticket(model: str, priority: int) -> Ticket:
    return Ticket(number=1, model=model, priority=priority, arrived=0.0)


def test_waits_are_told_apart_by_band_and_by_model() -> None:
    tally = Tally()
    tally.began(ticket("B", 100), 4.0)
    tally.began(ticket("A", 102), 2.0)
    tally.began(ticket("A", -98), 60.0)

    results = tally.results("afternoon")

    assert {band: waits.max for band, waits in results.by_band.items()} == {
        Band.INTERACTIVE: 4.0,
        Band.NORMAL: 0.0,
        Band.BATCH: 60.0,
    }
    assert {model: (waits.count, waits.p50) for model, waits in results.by_model.items()} == {
        "A": (2, 2.0),
        "B": (1, 4.0),
    }
    assert list(results.by_model) == ["A", "B"]
    assert results.scenario == "afternoon"


def test_time_belongs_to_what_runs_before_it_belongs_to_what_loads() -> None:
    tally = Tally()
    tally.passed(1.0, runs=True, loads=True)
    tally.passed(2.0, runs=True, loads=False)
    tally.passed(4.0, runs=False, loads=True)
    tally.passed(8.0, runs=False, loads=False)

    results = tally.results("")

    assert (results.running, results.loading, results.idle, results.makespan) == (3.0, 4.0, 8.0, 15.0)


def test_a_load_is_a_swap_if_another_model_had_to_go() -> None:
    tally = Tally()
    tally.load_began("A", frozenset())
    tally.load_began("B", frozenset({"A"}))

    assert (tally.results("").loads, tally.results("").swaps) == ({"A": 1, "B": 1}, 1)


def test_reorders_are_counted_by_the_band_of_who_went_and_by_term() -> None:
    tally = Tally()
    both = frozenset({Term.AGING, Term.SWAP_AFFINITY})
    tally.dispatched(Verdict(priority=0, band=Band.NORMAL, waited_us=0, changed_by=both))
    tally.dispatched(
        Verdict(priority=-100, band=Band.BATCH, waited_us=0, changed_by=frozenset({Term.SWAP_BUDGET}))
    )

    reorders = tally.results("").reorders

    assert reorders[Band.NORMAL] == {Term.AGING: 1, Term.SWAP_AFFINITY: 1, Term.SWAP_BUDGET: 0}
    assert reorders[Band.BATCH] == {Term.AGING: 0, Term.SWAP_AFFINITY: 0, Term.SWAP_BUDGET: 1}


def test_who_was_not_served_is_counted_by_band() -> None:
    tally = Tally()
    tally.ended(ticket("A", 0), Fate.CANCELLED)
    tally.ended(ticket("A", -1), Fate.REFUSED)
    tally.ended(ticket("A", 100), Fate.SERVED)

    results = tally.results("")

    assert results.cancelled == {Band.INTERACTIVE: 0, Band.NORMAL: 1, Band.BATCH: 0}
    assert results.refused == {Band.INTERACTIVE: 0, Band.NORMAL: 0, Band.BATCH: 1}
