"""The score's arithmetic: exact, never negative in waiting, and written without an exponent."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.config.model import SerialSettings
from llamaswap.scheduling.score import Formula, format_thousandths, microseconds, waited_us
from llamaswap.scheduling.vocabulary import Ticket

HIGHEST = 2**63 - 1


def formula(divisor: float = 60.0, bonus: int = 10) -> Formula:
    return Formula.of(SerialSettings(aging_divisor=divisor, swap_affinity_bonus=bonus))


def ticket(priority: int = 0, arrived: float = 0.0) -> Ticket:
    return Ticket(number=1, model="A", priority=priority, arrived=arrived)


@pytest.mark.parametrize(
    ("divisor", "divisor_us"),
    [(60, 60_000_000), (0.5, 500_000), (1e-6, 1), (1e9, 10**15), (0, 0), (0.0, 0)],
)
def test_a_divisor_becomes_whole_microseconds(divisor: float, divisor_us: int) -> None:
    assert formula(divisor).divisor_us == divisor_us


def test_a_divisor_too_small_for_microseconds_does_not_switch_aging_off() -> None:
    assert formula(1e-12).divisor_us == 1


def test_priorities_that_a_float_cannot_tell_apart_keep_their_order() -> None:
    assert formula().key(ticket(HIGHEST)) > formula().key(ticket(HIGHEST - 1))
    assert formula().key(ticket(-HIGHEST)) > formula().key(ticket(-HIGHEST - 1))


def test_one_point_is_worth_one_divisor_of_arrival() -> None:
    early, late = ticket(0, arrived=0.0), ticket(1, arrived=60.0)
    just_later = ticket(1, arrived=60.000001)

    assert formula().key(early) == formula().key(late)
    assert formula().key(early) > formula().key(just_later)


def test_without_aging_arrival_is_no_part_of_the_key() -> None:
    assert formula(0).key(ticket(5, arrived=0.0)) == formula(0).key(ticket(5, arrived=9e9)) == 5


def test_affinity_is_worth_its_points_in_the_unit_of_the_key() -> None:
    assert formula(60, 10).affinity_key() == formula(60).key(ticket(10)) - formula(60).key(ticket(0))
    assert formula(0, 10).affinity_key() == 10
    assert formula(60, 0).affinity_key() == formula(0, 0).affinity_key() == 0


@pytest.mark.parametrize(
    ("priority", "now", "resident", "thousandths"),
    [
        (0, 1.0, True, 10_017),
        (0, 2.0, False, 33),
        (-98, 584.0, False, -88_267),
        (100, 0.0, True, 110_000),
        (0, 0.03, False, 1),  # half a thousandth rounds up
        (0, 0.029999, False, 0),
        (-1, 0.03, False, -999),
        (HIGHEST, 60.0, True, (HIGHEST + 11) * 1000),
    ],
)
def test_the_score_is_rounded_to_thousandths(
    priority: int, now: float, resident: bool, thousandths: int
) -> None:
    assert formula().thousandths(ticket(priority), now, resident=resident) == thousandths


def test_without_aging_waiting_adds_nothing() -> None:
    assert formula(0).thousandths(ticket(7), 1e6, resident=False) == 7000
    assert formula(0).thousandths(ticket(7), 1e6, resident=True) == 17_000


def test_a_clock_that_went_back_makes_a_wait_of_nothing() -> None:
    assert waited_us(ticket(arrived=100.0), 40.0) == 0
    assert formula().thousandths(ticket(arrived=100.0), 40.0, resident=False) == 0


def test_waiting_is_counted_in_whole_microseconds() -> None:
    assert waited_us(ticket(arrived=0.1), 0.3) == 200_000
    assert microseconds(86400.000001) == 86_400_000_001


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (110_000, "110"),
        (-88_267, "-88.267"),
        (10_017, "10.017"),
        (33, "0.033"),
        (0, "0"),
        (-1, "-0.001"),
        (-500, "-0.5"),
        (-100_000, "-100"),
        (100, "0.1"),
        (1_010, "1.01"),
        (HIGHEST * 1000, "9223372036854775807"),
        (10**30, "1" + "0" * 27),
    ],
)
def test_a_score_is_written_with_three_decimals_at_most(value: int, text: str) -> None:
    assert format_thousandths(value) == text


@given(st.integers(-(10**25), 10**25))
def test_a_written_score_reads_back_as_the_same_number(value: int) -> None:
    text = format_thousandths(value)

    assert Decimal(text).scaleb(3) == value
    assert not {"e", "E", "+"} & set(text)
    assert "." not in text or not text.endswith(("0", "."))
