"""A recommendation, its rule and its price."""

from __future__ import annotations

from llamaswap.simulation.advice import advise, seconds
from llamaswap.simulation.scenario import box_of
from llamaswap.simulation.tuning import Grid, tune
from support.simulation_traces import afternoon
from support.simulation_tuning import candidate, tuning

QUICK = candidate(30.0, 3000.0, 9000.0, 800)
EVEN = candidate(32.0, 60.0, 120.0, 700, budget=15.0)
THRIFTY = candidate(49.0, 44.0, 44.0, 500, budget=60.0)
CHANGE = (
    "Against the present settings (60/10): interactive 30 s -> 32 s, normal 3000 s -> 60 s, "
    "batch 9000 s -> 120 s, swaps 800 -> 700."
)


def test_a_little_interactive_wait_is_given_up_for_a_lot_of_normal_wait() -> None:
    advice = advise(tuning(QUICK, EVEN, THRIFTY))

    assert advice.choice is EVEN


def test_more_than_the_tolerance_is_not() -> None:
    assert advise(tuning(QUICK, EVEN, THRIFTY), tolerance=0.01).choice is QUICK
    assert advise(tuning(QUICK, EVEN, THRIFTY), tolerance=1.0).choice is THRIFTY


def test_a_second_more_is_never_too_much() -> None:
    quick, even = candidate(0.1, 3000.0, 0.0, 9), candidate(1.0, 60.0, 0.0, 9, budget=15.0)

    assert advise(tuning(quick, even)).choice is even


def test_of_those_that_are_close_in_every_wait_the_one_with_the_fewest_swaps_is_taken() -> None:
    many, few = candidate(30.0, 60.0, 100.0, 900), candidate(31.0, 61.0, 101.0, 400, bonus=30)

    advice = advise(tuning(many, few))

    assert advice.choice is few
    assert "Of these 2, 60/30 has the fewest swaps: 400." in advice.words


def test_the_words_name_the_rule_the_setting_the_change_and_what_is_given_up() -> None:
    words = advise(tuning(QUICK, EVEN, THRIFTY)).words

    assert (
        words[0]
        == "3 settings were tried; 0 of them are beaten or equalled in everything by another one, 3 are left."
    )
    assert words[1] == (
        "The best interactive wait (95th percentile) of these is 30 s, with 60/10; "
        "2 of 3 come within 10% or 1.0 s of it."
    )
    assert words[4:6] == (
        "Recommended: agingDivisor 60, swapAffinityBonus 10, swapBudgetSeconds 15.",
        CHANGE,
    )
    assert words[6:] == (
        "Given up: 2.0 s of interactive wait, which 60/10 would bring down to 30 s.",
        "Given up: 16 s of normal wait, which 60/10/60 would bring down to 44 s.",
        "Given up: 76 s of batch wait, which 60/10/60 would bring down to 44 s.",
        "Given up: 200 swaps, which 60/10/60 would save.",
    )


def test_bands_that_nobody_asked_in_are_not_spoken_of() -> None:
    words = " ".join(advise(tuning(candidate(30.0, -1.0, -1.0, 8))).words)

    assert "interactive" in words
    assert "normal" not in words
    assert "batch" not in words


def test_the_longest_batch_wait_is_called_so() -> None:
    words = " ".join(advise(tuning(EVEN), longest_batch=True).words)

    assert "best batch wait (longest)" in words
    assert "best normal wait (95th percentile)" in words


def test_present_settings_that_are_as_good_are_not_changed() -> None:
    assert (
        "It does what the present settings (60/10/15) do: there is nothing to change."
        in advise(tuning(EVEN)).words
    )


def test_real_sweeps_are_advised_on_from_their_front() -> None:
    swept = tune(
        afternoon(400),
        box_of(f"m{n}" for n in range(4)),
        Grid(aging_divisors=(60.0, 1.0), swap_affinity_bonuses=(10, 99), swap_budgets=(0.0, 15.0)),
    )

    assert advise(swept).choice in swept.front


def test_waits_are_written_for_people() -> None:
    assert [seconds(value) for value in (0.0, 0.44, 9.94, 32.4, 3003.0)] == [
        "0.0 s",
        "0.4 s",
        "9.9 s",
        "32 s",
        "3003 s",
    ]
