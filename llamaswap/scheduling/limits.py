"""How many requests of one model may be waiting, loading and running at once."""

from __future__ import annotations

from collections.abc import Mapping

from llamaswap.config.model import ModelConfig


class ConcurrencyLimits:
    """Slots per model, counted by real model id across its aliases.

    Args:
        models: every local model.
        default: the limit of a model that sets none; None = no limit.
    """

    def __init__(self, models: Mapping[str, ModelConfig], default: int | None) -> None:
        self._limits = {
            name: model.concurrency_limit if model.concurrency_limit > 0 else default
            for name, model in models.items()
        }
        self._taken: dict[str, int] = {}

    def take(self, model: str) -> bool:
        """Take a slot; False when none is free."""
        limit, taken = self._limits.get(model), self._taken.get(model, 0)
        if limit is not None and taken >= limit:
            return False
        self._taken[model] = taken + 1
        return True

    def force(self, model: str) -> None:
        """Take a slot for a request that was admitted before; it may exceed the limit."""
        self._taken[model] = self._taken.get(model, 0) + 1

    def give_back(self, model: str) -> None:
        """Return a slot that was taken."""
        self._taken[model] -= 1
        if not self._taken[model]:
            del self._taken[model]
