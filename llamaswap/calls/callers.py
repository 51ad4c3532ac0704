"""What a request's priority comes to: its own wish, what its caller may ask for, what its model is used for.

Pure.  Who the caller is, is found out elsewhere; what a priority does is the scheduler's business.
"""

from __future__ import annotations

from typing import Final

from llamaswap.calls.priority import ALIASES
from llamaswap.config.model import CallerConfig, PrioritiesConfig

_EDGES: Final = sorted(ALIASES.values())[1:]
"""Where a band ends and the next one begins."""


class Policy:
    """Decides what a request waits with.

    Args:
        priorities: as configured; without anything in it, a request gets what it asks for.
    """

    def __init__(self, priorities: PrioritiesConfig) -> None:
        self._models = priorities.models

    @property
    def depends_on_model(self) -> bool:
        """Whether a model may have the last word on a request that says nothing."""
        return bool(self._models)

    def effective(self, asked: int | None, caller: CallerConfig | None, model: str) -> int:
        """Return the priority that a request gets.

        What it asked for counts, else what its caller has for such a case, else
        what its model has, else 0.  A caller's bound comes next, and then its
        offset, which never leads out of the band.

        Args:
            asked: by its header, 0 if that made no sense; None without one.
            caller: whose key it came with, if that is anybody's.
            model: a real model id.
        """
        if asked is None and caller is not None:
            asked = caller.default_priority
        wanted = self._models.get(model, 0) if asked is None else asked
        if caller is None:
            return wanted
        if caller.max_priority is not None:
            wanted = min(wanted, caller.max_priority)
        return _within_band(wanted, caller.offset)


def _within_band(priority: int, offset: int) -> int:
    """Add an offset, up to the last priority below the next band."""
    above = [edge for edge in _EDGES if edge > priority]
    return min(priority + offset, above[0] - 1) if above else priority + offset
