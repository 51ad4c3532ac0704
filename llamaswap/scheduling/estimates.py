"""How long a model's runs and loads take, learned from those that were measured.

Knows numbers by the names of models.  It reads no clock, knows no ticket, and
forgets: what counts are the last few hundred runs of a model, since settings,
drivers and habits change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from llamaswap.scheduling.sketches import Distribution, Sketch


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """How long something takes, as it was measured; seconds, none of them negative."""

    count: int  # measurements behind the numbers; 0 where they are extrapolated
    mean: float
    variance: float  # seconds squared
    p50: float  # to 1 %
    p90: float  # to 1 %, never below p50

    @classmethod
    def of(cls, distribution: Distribution | None) -> Spread | None:
        """Return the few numbers of a distribution that people read; None of None."""
        if distribution is None:
            return None
        return cls(
            count=distribution.count,
            mean=distribution.mean,
            variance=distribution.variance,
            p50=distribution.quantile(0.5),
            p90=distribution.quantile(0.9),
        )


class Estimates:
    """What is known of each model's runs and loads; one object outlives reloads of the configuration.

    A measurement costs one count in one bin; nothing is worked out before
    somebody asks, and then once until the next measurement.
    """

    def __init__(self) -> None:
        self._runs: dict[str, Sketch] = {}
        self._loads: dict[str, Sketch] = {}

    def ran(self, model: str, seconds: float) -> None:
        """Learn how long one job had the box, from its lease to its end; whole answers only.

        What no clock can have shown (negative, not finite) is ignored.
        """
        _learn(self._runs, model, seconds)

    def loaded(self, model: str, seconds: float) -> None:
        """Learn how long one load took, from its decision until the model was ready."""
        _learn(self._loads, model, seconds)

    def seed(self, model: str, runs: Iterable[float], loads: Iterable[float]) -> None:
        """Learn what was measured before a restart, oldest first; seconds."""
        for seconds in runs:
            self.ran(model, seconds)
        for seconds in loads:
            self.loaded(model, seconds)

    def keep(self, models: Collection[str]) -> None:
        """Forget every model but these: the configuration bounds the state."""
        for sketches in (self._runs, self._loads):
            for model in sketches.keys() - set(models):
                del sketches[model]

    def run(self, model: str) -> Spread | None:
        """Return how long a run of the model takes; None if none was ever measured."""
        return Spread.of(self.runs(model))

    def load(self, model: str) -> Spread | None:
        """Return how long a load of the model takes; None if none was ever measured."""
        return Spread.of(self.loads(model))

    def expected_run(self, model: str) -> float | None:
        """Return the median run in seconds, None if never measured.

        Cheap enough for every pick: it may not know the last 3 % of the measurements yet.
        """
        sketch = self._runs.get(model)
        return None if sketch is None else sketch.median()

    def remaining(self, model: str, elapsed: float) -> Spread | None:
        """Return how much longer a run goes on that has lasted `elapsed` seconds."""
        runs = self.runs(model)
        return None if runs is None else Spread.of(runs.beyond(elapsed))

    def remaining_load(self, model: str, elapsed: float) -> Spread | None:
        """Return how much longer a load goes on that has lasted `elapsed` seconds."""
        loads = self.loads(model)
        return None if loads is None else Spread.of(loads.beyond(elapsed))

    def runs(self, model: str) -> Distribution | None:
        """Return all that is known of a model's runs."""
        return _known(self._runs, model)

    def loads(self, model: str) -> Distribution | None:
        """Return all that is known of a model's loads."""
        return _known(self._loads, model)


def _learn(sketches: dict[str, Sketch], model: str, seconds: float) -> None:
    sketch = sketches.get(model)
    if sketch is None:
        sketch = sketches[model] = Sketch()
    sketch.add(seconds)


def _known(sketches: dict[str, Sketch], model: str) -> Distribution | None:
    sketch = sketches.get(model)
    return None if sketch is None else sketch.distribution()
