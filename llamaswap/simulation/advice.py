"""Recommend one of the settings worth having, by a rule that is said together with its numbers.

The rule: of the settings on the front, keep those whose interactive wait is
close to the best; of these, those whose normal wait is; of these, those whose
batch wait is; of these, the one with the fewest swaps.  "Close" is within a
tenth (or what else the caller thinks worth it), or a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llamaswap.scheduling.vocabulary import Band
from llamaswap.simulation.tuning import Candidate, Tuning

TOLERANCE = 0.10
"""The share of a best wait that is not worth giving up another wait for."""

MOMENT = 1.0
"""Seconds that nobody would notice, however short the best wait is."""

_WAITS = (Band.INTERACTIVE, Band.NORMAL, Band.BATCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One setting, and why it and no other."""

    choice: Candidate
    words: tuple[str, ...]  # sentences, in the order in which a person reads them


def advise(tuning: Tuning, *, tolerance: float = TOLERANCE, longest_batch: bool = False) -> Advice:
    """Choose from the front.

    Args:
        tuning: at least one setting was tried.
        tolerance: the share by which a wait may be above the best one for the sake of the next, >= 0.
        longest_batch: as it was tuned; for the words.
    """
    measure = dict.fromkeys(_WAITS, "95th percentile")
    if longest_batch:
        measure[Band.BATCH] = "longest"
    left, words = tuning.front, [_words_of_front(tuning)]
    for place, band in enumerate(_WAITS):
        if any(candidate.results.by_band[band].count for candidate in left):
            kept = _close(left, place, tolerance)
            best = _words_of_best(left, place, f"{band.value} wait ({measure[band]})")
            words.append(
                f"{best}; {len(kept)} of {len(left)} come within {tolerance:.0%} or {seconds(MOMENT)} of it."
            )
            left = kept
    choice = min(left, key=lambda candidate: (candidate.objectives.swaps, candidate.objectives))
    if len(left) > 1:
        words.append(f"Of these {len(left)}, {choice.name} has the fewest swaps: {choice.objectives.swaps}.")
    words.append(_words_of_choice(choice))
    words.append(_words_of_change(choice, tuning))
    words += _words_of_price(choice, tuning.front)
    return Advice(choice=choice, words=tuple(words))


def seconds(value: float) -> str:
    """Write a wait for a person: `0.4 s`, `32 s`, `3003 s`."""
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def _close(candidates: Sequence[Candidate], place: int, tolerance: float) -> tuple[Candidate, ...]:
    best = min(candidate.objectives[place] for candidate in candidates)
    most = max(best * (1 + tolerance), best + MOMENT)
    return tuple(candidate for candidate in candidates if candidate.objectives[place] <= most)


def _words_of_front(tuning: Tuning) -> str:
    beaten = len(tuning.tried) - len(tuning.front)
    return (
        f"{len(tuning.tried)} settings were tried; {beaten} of them are beaten or equalled in everything "
        f"by another one, {len(tuning.front)} are left."
    )


def _words_of_best(candidates: Sequence[Candidate], place: int, what: str) -> str:
    best = min(candidates, key=lambda candidate: candidate.objectives[place])
    return f"The best {what} of these is {seconds(best.objectives[place])}, with {best.name}"


def _words_of_choice(choice: Candidate) -> str:
    settings = choice.settings
    return (
        f"Recommended: agingDivisor {settings.aging_divisor:g}, "
        f"swapAffinityBonus {settings.swap_affinity_bonus}, swapBudgetSeconds {settings.swap_budget:g}."
    )


def _words_of_change(choice: Candidate, tuning: Tuning) -> str:
    old, new = tuning.current, choice
    if old.objectives == new.objectives:
        return f"It does what the present settings ({old.name}) do: there is nothing to change."
    waits = [
        f"{band.value} {seconds(old.objectives[place])} -> {seconds(new.objectives[place])}"
        for place, band in enumerate(_WAITS)
        if new.results.by_band[band].count
    ]
    return (
        f"Against the present settings ({old.name}): {', '.join(waits)}, "
        f"swaps {old.objectives.swaps} -> {new.objectives.swaps}."
    )


def _words_of_price(choice: Candidate, front: Sequence[Candidate]) -> list[str]:
    """Say for each wait what another setting would have given."""
    words = []
    for place, band in enumerate(_WAITS):
        best = min(front, key=lambda candidate: candidate.objectives[place])
        lost = choice.objectives[place] - best.objectives[place]
        if lost > 0:
            words.append(
                f"Given up: {seconds(lost)} of {band.value} wait, which {best.name} would bring down to "
                f"{seconds(best.objectives[place])}."
            )
    fewest = min(front, key=lambda candidate: candidate.objectives.swaps)
    more = choice.objectives.swaps - fewest.objectives.swaps
    if more:
        words.append(f"Given up: {more} swaps, which {fewest.name} would save.")
    return words
