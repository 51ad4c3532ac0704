"""What a trace is played against: a configuration, and how long its models take to load.

Settings are the daemon's own values, so that what was simulated can be
written into a configuration file as it stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from llamaswap.config.model import (
    NO_MAPPING,
    Config,
    GroupConfig,
    ModelConfig,
    SchedulerConfig,
    SchedulerName,
    SerialSettings,
)

DEFAULT_LOAD = 15.0
"""Seconds that a load takes where nothing is known of the model."""

NO_LIMIT = 2**31
"""A `concurrencyLimit` that no trace reaches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One box and its settings.

    Its models' servers never fail, never idle out, and do not slow each other
    down where several may run at once.
    """

    name: str
    config: Config  # models, groups or matrix, scheduler; the rest does not matter here
    loads: Mapping[str, float] = field(default_factory=lambda: NO_MAPPING)
    """Seconds by model, from the decision to load it until it is ready, evictions included."""
    default_load: float = DEFAULT_LOAD  # seconds, of every other model
    parallel: Mapping[str, int] = field(default_factory=lambda: NO_MAPPING)
    """Requests that a model's server works on at once (`--parallel`), by model; the others wait inside.
    Missing = 1; never less than the model's `width`."""
    resident: tuple[str, ...] = ()  # models that are ready when the trace begins

    @property
    def scheduler(self) -> SchedulerConfig:
        """Who goes next."""
        return self.config.scheduler

    def load_of(self, model: str) -> float:
        """Return how many seconds a load of this model takes."""
        return self.loads.get(model, self.default_load)

    def parallel_of(self, model: str) -> int:
        """Return how many requests this model's server works on at once, at least 1."""
        return max(1, self.parallel.get(model, 1), self.config.scheduler.serial.width.get(model, 1))

    def under(self, scheduler: SchedulerConfig, name: str | None = None) -> Scenario:
        """Return the same box, its servers unchanged, under another scheduler."""
        servers = {model: self.parallel_of(model) for model in self.config.models}
        config = replace(self.config, scheduler=scheduler)
        return replace(self, name=name or describe(scheduler), config=config, parallel=servers)

    def with_serial(self, name: str | None = None, **changes: Any) -> Scenario:
        """Return the same box under the serial scheduler, these of its settings changed.

        Args:
            name: None = one made of the settings.
            changes: fields of `SerialSettings`.
        """
        serial = replace(self.config.scheduler.serial, **changes)
        return self.under(
            replace(self.config.scheduler, use=SchedulerName.SERIAL, configured=True, serial=serial), name
        )

    def baseline(self) -> Scenario:
        """Return the same box under `fifo`, with no limit on how many of a model's requests it takes.

        The limit of 10 that fifo has by default would answer a burst with 429;
        a comparison is about the same requests.
        """
        fifo = replace(self.config.scheduler, use=SchedulerName.FIFO)
        lifted = {
            model: replace(one, concurrency_limit=NO_LIMIT) for model, one in self.config.models.items()
        }
        return replace(self, config=replace(self.config, models=lifted)).under(fifo, "fifo")


def describe(scheduler: SchedulerConfig) -> str:
    """Name a scheduler by its settings: `serial 60/10`, with a budget `serial 60/10/15`."""
    if scheduler.use is SchedulerName.FIFO:
        return scheduler.use.value
    return f"{scheduler.use.value} {describe_settings(scheduler.serial)}"


def describe_settings(serial: SerialSettings) -> str:
    """Return agingDivisor/swapAffinityBonus, and /swapBudgetSeconds where there is one."""
    words = f"{serial.aging_divisor:g}/{serial.swap_affinity_bonus}"
    return f"{words}/{serial.swap_budget:g}" if serial.swap_budget else words


def box_of(models: Iterable[str], name: str = "", **settings: Any) -> Scenario:
    """Return a box for models that evict each other, under the serial scheduler.

    Args:
        models: their ids.
        name: of the scenario; "" = one made of the settings.
        settings: fields of `SerialSettings`; those that are missing have their defaults.
    """
    ids = sorted(set(models))
    config = Config(
        models={model: ModelConfig(id=model) for model in ids},
        groups=(GroupConfig(id="(default)", members=tuple(ids)),),
    )
    return Scenario(name=name, config=config).with_serial(name or None, **settings)
