"""Try many settings of the serial scheduler on one trace, and keep those worth having.

What to recommend of them is `llamaswap.simulation.advice`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context
from typing import NamedTuple

from llamaswap.config.model import SerialSettings
from llamaswap.scheduling.vocabulary import Band
from llamaswap.simulation.arrivals import Arrival
from llamaswap.simulation.engine import simulate
from llamaswap.simulation.pareto import pareto_front
from llamaswap.simulation.results import Results
from llamaswap.simulation.scenario import Scenario, describe_settings

Tried = Callable[[int, int], None]
"""Progress: how many settings have been tried, of how many."""

DEFAULTS = SerialSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The values to try; every combination of them is."""

    aging_divisors: tuple[float, ...] = (60.0, 0.0, 10.0, 300.0, 1800.0)  # seconds a point
    swap_affinity_bonuses: tuple[int, ...] = (10, 0, 5, 30, 99)  # points
    swap_budgets: tuple[float, ...] = (0.0, 15.0, 60.0, 240.0)  # seconds

    def combinations(self, largest_offset: int = 0) -> Iterator[tuple[float, int, float]]:
        """Return every combination that the configuration allows, the first values of each list first.

        Args:
            largest_offset: points that a caller may add; a bonus must leave room for it inside a band.
        """
        fitting = (bonus for bonus in self.swap_affinity_bonuses if largest_offset + bonus < 100)
        for budget, bonus, divisor in product(self.swap_budgets, fitting, self.aging_divisors):
            yield divisor, bonus, budget


class Objectives(NamedTuple):
    """What a setting is judged by; less is better.  Waits are in seconds, 0 where nobody waited."""

    interactive: float  # 95th percentile
    normal: float  # 95th percentile
    batch: float  # 95th percentile, or the longest
    swaps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One setting and what it did."""

    settings: SerialSettings
    results: Results
    objectives: Objectives

    @property
    def name(self) -> str:
        """`60/10`, or `60/10/15` with a budget."""
        return describe_settings(self.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """All that were tried, in the order of the grid, and the places of those worth having."""

    current: Candidate  # the scenario's own settings
    baseline: Results  # the same box under `fifo`
    tried: tuple[Candidate, ...]
    front_places: tuple[int, ...]

    @property
    def front(self) -> tuple[Candidate, ...]:
        """Those that no other one beats: the best interactive wait first."""
        return tuple(sorted((self.tried[place] for place in self.front_places), key=lambda c: c.objectives))


def tune(
    arrivals: Iterable[Arrival],
    scenario: Scenario,
    grid: Grid | None = None,
    *,
    longest_batch: bool = False,
    workers: int = 1,
    progress: Tried = lambda _done, _total: None,
) -> Tuning:
    """Play a trace under every setting of the grid, under the scenario's own and under `fifo`.

    Args:
        arrivals: kept in memory if it is an iterator.
        scenario: the box; its other settings (width, limits) stay as they are.
        grid: None = the default one, 100 settings.
        longest_batch: judge batch by its longest wait, not by its 95th percentile.
        workers: processes side by side; the results do not depend on it.
        progress: called after each setting.

    Raises:
        BadTrace: as `simulate`.
    """
    if isinstance(arrivals, Iterator):
        arrivals = tuple(arrivals)
    offset = max((caller.offset for caller in scenario.config.priorities.callers), default=0)
    settings = list((grid or Grid()).combinations(offset))
    variants = [
        scenario.with_serial(aging_divisor=divisor, swap_affinity_bonus=bonus, swap_budget=budget)
        for divisor, bonus, budget in settings
    ]
    played = [scenario.baseline(), scenario.with_serial(), *variants]
    baseline, own, *rest = _play(arrivals, played, workers, progress)
    current = _candidate(played[1], own, longest_batch)
    tried = tuple(_candidate(one, done, longest_batch) for one, done in zip(variants, rest, strict=True))
    places = pareto_front([candidate.objectives for candidate in tried])
    return Tuning(current=current, baseline=baseline, tried=tried, front_places=places)


def objectives_of(results: Results, *, longest_batch: bool = False) -> Objectives:
    """Return what a run is judged by."""
    batch = results.by_band[Band.BATCH]
    return Objectives(
        interactive=results.by_band[Band.INTERACTIVE].p95,
        normal=results.by_band[Band.NORMAL].p95,
        batch=batch.max if longest_batch else batch.p95,
        swaps=results.swaps,
    )


def _candidate(scenario: Scenario, results: Results, longest_batch: bool) -> Candidate:
    return Candidate(
        settings=scenario.scheduler.serial,
        results=results,
        objectives=objectives_of(results, longest_batch=longest_batch),
    )


def _play(
    arrivals: Iterable[Arrival], scenarios: Sequence[Scenario], workers: int, progress: Tried
) -> list[Results]:
    """Return the results in the order of the scenarios, whoever is ready first."""
    work = _Work(arrivals, scenarios)
    results: list[Results] = []
    for one in work.alone() if workers <= 1 else work.shared(workers):
        results.append(one)
        progress(len(results), len(scenarios))
    return results


class _Work:
    """A trace and what to play it against; processes inherit it, so that nothing of it is copied."""

    current: _Work

    def __init__(self, arrivals: Iterable[Arrival], scenarios: Sequence[Scenario]) -> None:
        self._arrivals = arrivals
        self._scenarios = scenarios

    def alone(self) -> Iterator[Results]:
        """Play one after the other, here."""
        for place in range(len(self._scenarios)):
            yield self.play(place)

    def shared(self, workers: int) -> Iterator[Results]:
        """Play in so many processes; here where there can be none, as without /dev/shm."""
        try:
            pool = ProcessPoolExecutor(
                workers, mp_context=get_context("fork"), initializer=_begin, initargs=(self,)
            )
        except (ImportError, NotImplementedError, OSError):
            yield from self.alone()
            return
        with pool:
            yield from pool.map(_play_one, range(len(self._scenarios)))

    def play(self, place: int) -> Results:
        """Play one of them."""
        return simulate(self._arrivals, self._scenarios[place])


def _begin(work: _Work) -> None:
    """Remember in a worker what it works on."""
    _Work.current = work


def _play_one(place: int) -> Results:
    return _Work.current.play(place)
