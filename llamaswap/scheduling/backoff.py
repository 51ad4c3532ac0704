"""Which models keep failing to load, and for how long nobody tries them again.

Three failures in a row close a model for 5 s; each further one doubles that,
up to 5 min; one success forgets everything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from llamaswap.errors import ModelFailing

STRIKES = 3
FIRST_PAUSE = 5.0  # seconds
LONGEST_PAUSE = 300.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    failures: int
    closed_until: float  # seconds on the scheduler's clock
    why: str
    output: tuple[str, ...]


class Backoff:
    """The load failures of each model since its last success."""

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}

    def failed(self, model: str, why: str, output: Sequence[str], now: float) -> None:
        """Count a failed load."""
        known = self._records.get(model)
        failures = known.failures + 1 if known else 1
        self._records[model] = _Record(
            failures=failures, closed_until=now + pause_after(failures), why=why, output=tuple(output)
        )

    def succeeded(self, model: str) -> None:
        """Forget the failures of a model that has loaded."""
        self._records.pop(model, None)

    def refusal(self, model: str, now: float) -> ModelFailing | None:
        """Return what a ticket for a closed model is told, or None if the model may be tried."""
        record = self._records.get(model)
        if record is None or now >= record.closed_until:
            return None
        retry_after = max(1, math.ceil(record.closed_until - now))
        return ModelFailing(model, record.why, record.output, retry_after)


def pause_after(failures: int) -> float:
    """Return the seconds for which a model is closed after so many failures in a row."""
    if failures < STRIKES:
        return 0.0
    doublings = min(failures - STRIKES, 16)  # 2**16 * 5 s is far beyond the cap
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**doublings)
