"""How many requests of one model may be waiting, loading and running at once."""

from __future__ import annotations

from collections import Counter
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
        self._taken: Counter[str] = Counter()

    def take(self, model: str) -> bool:
        """Take a slot; False when none is free."""
        limit = self._limits.get(model)
        if limit is not None and self._taken[model] >= limit:
            return False
        self._taken[model] += 1
        return True

    def force(self, model: str) -> None:
        """Take a slot for a request that was admitted before; it may exceed the limit."""
        self._taken[model] += 1

    def give_back(self, model: str) -> None:
        """Return a slot that was taken."""
        self._taken[model] -= 1
        if not self._taken[model]:
            del self._taken[model]
