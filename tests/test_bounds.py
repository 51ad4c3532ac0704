"""Limits of waiting: which counts, when it is over, and what those are told who are turned away."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from typing_extensions import override

from llamaswap.bounds import LONGEST, MOST_REMEMBERED, Bounds
from llamaswap.config.model import SerialSettings
from llamaswap.errors import DeadlineHopeless
from llamaswap.prospects import Prospects
from llamaswap.scheduling.forecast import Eta
from llamaswap.scheduling.vocabulary import Band, Ticket

TICKET = Ticket(number=1, model="a", priority=0, arrived=0.0)


class Hall:
    """Bounds, and what rang."""

    def __init__(self, **settings: Any) -> None:
        self.clock = Clock()
        self.rang: list[tuple[int, float]] = []
        self.bounds = Bounds(self.clock, lambda number, seconds: self.rang.append((number, seconds)))
        self.bounds.configure(SerialSettings(**settings))


class Foretold(Prospects):
    """Says when the next of any band goes; counts how often it was asked."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.asked = 0

    @override
    def next_of(self, band: Band) -> Eta | None:
        """What the test says."""
        self.asked += 1
        return None if self.seconds is None else Eta(self.seconds, self.seconds)


def test_the_smaller_of_both_limits_counts() -> None:
    bounds = Hall(max_wait={"normal": 30.0, "batch": 0.0}).bounds

    assert bounds.longest(Band.NORMAL, None) == 30.0
    assert bounds.longest(Band.NORMAL, 5.0) == 5.0
    assert bounds.longest(Band.NORMAL, 50.0) == 30.0
    assert bounds.longest(Band.INTERACTIVE, 50.0) == 50.0
    assert bounds.longest(Band.INTERACTIVE, None) is None
    assert bounds.longest(Band.BATCH, None) is None


def test_only_a_limit_that_is_set_makes_work() -> None:
    hall = Hall()
    hall.bounds.begin(TICKET, Band.NORMAL, None)

    assert not hall.bounds.configured
    assert hall.clock.getDelayedCalls() == []
    assert Hall(max_queue={"batch": 1}).bounds.configured


def test_a_deadline_rings_once_and_says_what_the_limit_was() -> None:
    hall = Hall(max_wait={"normal": 30.0})
    hall.bounds.begin(TICKET, Band.NORMAL, None)
    hall.clock.advance(29.0)
    assert hall.rang == []
    assert hall.bounds.max_wait(1) == 30.0

    hall.clock.pump([1.0, 60.0])

    assert hall.rang == [(1, 30.0)]
    assert hall.bounds.max_wait(1) is None


def test_who_leaves_takes_his_timer_with_him() -> None:
    hall = Hall(max_wait={"normal": 30.0})
    hall.bounds.begin(TICKET, Band.NORMAL, None)

    hall.bounds.drop(1)
    hall.bounds.drop(1)

    assert hall.clock.getDelayedCalls() == []


def test_a_request_of_its_own_limit_is_measured_from_its_arrival() -> None:
    hall = Hall()
    hall.clock.advance(3.0)

    hall.bounds.begin(TICKET, Band.NORMAL, 10.0)
    hall.clock.advance(7.0)

    assert hall.rang == [(1, 10.0)]


def test_another_band_means_its_limit_from_now_and_the_own_one_as_before() -> None:
    hall = Hall(max_wait={"interactive": 30.0})
    hall.bounds.begin(TICKET, Band.BATCH, 100.0)
    hall.clock.advance(60.0)

    hall.bounds.move(TICKET, Band.INTERACTIVE)
    assert hall.bounds.max_wait(1) == 90.0
    hall.bounds.move(TICKET, Band.NORMAL)
    assert hall.bounds.max_wait(1) == 100.0

    hall.clock.advance(40.0)
    assert hall.rang == [(1, 100.0)]


def test_a_month_is_watched_for_as_long_as_the_kernel_can_sleep() -> None:
    hall = Hall(max_wait={"normal": 1e12})

    hall.bounds.begin(TICKET, Band.NORMAL, None)

    (call,) = hall.clock.getDelayedCalls()
    assert call.getTime() == LONGEST


def test_a_new_configuration_is_for_newcomers() -> None:
    hall = Hall(max_wait={"normal": 30.0})
    hall.bounds.begin(TICKET, Band.NORMAL, None)

    hall.bounds.configure(None)

    assert hall.bounds.max_wait(1) == 30.0
    assert hall.bounds.longest(Band.NORMAL, None) is None


def test_a_band_is_full_beyond_its_number_and_says_when_the_next_of_it_goes() -> None:
    bounds = Hall(max_queue={"batch": 2, "normal": 0}).bounds
    full = bounds.too_many(Band.BATCH, 3, Foretold(41.2))

    assert bounds.too_many(Band.BATCH, 2, Foretold(1.0)) is None
    assert bounds.too_many(Band.NORMAL, 99, Foretold(1.0)) is None
    assert full is not None
    assert (full.status, full.retry_after) == (429, 42)
    assert full.message == "too many batch requests are waiting"


def test_a_hint_is_between_a_second_and_ten_minutes_and_five_seconds_where_nobody_knows() -> None:
    def hint(seconds: float | None) -> int | None:
        full = Hall(max_queue={"batch": 1}).bounds.too_many(Band.BATCH, 2, Foretold(seconds))
        return None if full is None else full.retry_after

    assert [hint(seconds) for seconds in (0.0, 12.0, 9999.0, None)] == [1, 12, 600, 5]


def test_a_crowd_at_the_door_is_told_what_was_foretold_a_moment_ago() -> None:
    hall, foretold = Hall(max_queue={"batch": 1}), Foretold(10.0)
    for _ in range(100):
        hall.bounds.too_many(Band.BATCH, 2, foretold)
    assert foretold.asked == 1

    hall.clock.advance(1.0)
    hall.bounds.too_many(Band.BATCH, 2, foretold)

    assert foretold.asked == 2


def test_a_wait_is_hopeless_when_half_of_its_kind_would_wait_longer() -> None:
    def hopeless(band: Band, seconds: float | None, own: float | None = None) -> DeadlineHopeless | None:
        eta = None if seconds is None else Eta(seconds, 2 * seconds)
        return Hall(max_wait={"normal": 30.0}).bounds.hopeless(TICKET, band, own, lambda: eta)

    refused = hopeless(Band.NORMAL, 95.4)

    assert hopeless(Band.NORMAL, 30.0) is None
    assert hopeless(Band.NORMAL, None) is None
    assert hopeless(Band.BATCH, 1e6) is None
    assert hopeless(Band.BATCH, 20.0, own=10.0) is not None
    assert refused is not None
    assert (refused.status, refused.retry_after) == (503, 65)


def test_a_crowd_that_would_wait_too_long_costs_one_forecast_for_each_kind() -> None:
    hall, asked = Hall(max_wait={"normal": 30.0}), 0

    def eta() -> Eta:
        nonlocal asked
        asked += 1
        return Eta(95.0, 95.0)

    for _ in range(100):
        assert hall.bounds.hopeless(TICKET, Band.NORMAL, None, eta) is not None
    assert asked == 1
    assert (
        hall.bounds.hopeless(TICKET, Band.INTERACTIVE, 100.0, eta) is None
    )  # who may wait longer is judged anew
    assert asked == 2

    hall.clock.advance(0.3)
    hall.bounds.hopeless(TICKET, Band.NORMAL, None, eta)
    assert asked == 3


def test_what_is_remembered_of_crowds_is_bounded() -> None:
    hall = Hall(max_wait={"normal": 30.0})

    for number in range(3 * MOST_REMEMBERED):
        ticket = Ticket(number=number, model="a", priority=number, arrived=0.0)
        hall.bounds.hopeless(ticket, Band.NORMAL, None, lambda: Eta(95.0, 95.0))

    assert len(hall.bounds._too_long) <= MOST_REMEMBERED


def test_when_all_is_over_no_timer_is_left() -> None:
    hall = Hall(max_wait={"normal": 30.0})
    hall.bounds.begin(TICKET, Band.NORMAL, None)

    hall.bounds.clear()

    assert hall.clock.getDelayedCalls() == []
