"""What is known of graphics processors, whoever makes them.

Values only; each maker's driver has a module of its own.  What a driver does not tell is None, never a zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from llamaswap.telemetry.sources import Source, SourceAbsent, SourceFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSample:
    """One graphics processor at one moment."""

    id: int  # its place in the driver's list
    name: str
    uuid: str  # "" where it has none
    celsius: int | None = None
    memory_celsius: int | None = None
    busy_percent: float | None = None
    memory_used_mib: int | None = None
    memory_total_mib: int | None = None
    fan_percent: float | None = None
    power_watts: float | None = None

    @property
    def memory_percent(self) -> float | None:
        """How full its memory is."""
        if self.memory_used_mib is None or not self.memory_total_mib:
            return None
        return round(self.memory_used_mib / self.memory_total_mib * 100, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """What does not change about one graphics processor."""

    vendor: str
    model: str
    architecture: str | None = None
    memory_kind: str = "unknown"  # dedicated, unified, shared_system or unknown
    memory_bytes: int | None = None
    driver: str | None = None
    driver_version: str | None = None
    power_limit_watts: float | None = None


class GpuSource(Source[tuple[GpuSample, ...]], Protocol):
    """The graphics processors of one maker."""

    def describe(self) -> tuple[GpuFacts, ...]:
        """Tell what does not change; may block.

        Raises:
            SourceFailed: not now.
        """


def open_first(openers: Sequence[Callable[[], GpuSource]]) -> GpuSource:
    """Open the first source that works.

    Raises:
        SourceAbsent: there is no graphics processor that any of them knows.
        SourceFailed: there seems to be one, but its driver does not work.
    """
    reasons: list[SourceFailed] = []
    for opener in openers:
        try:
            return opener()
        except SourceFailed as failed:
            reasons.append(failed)
    troubles = [reason for reason in reasons if not isinstance(reason, SourceAbsent)]
    if troubles:
        raise troubles[0]
    raise SourceAbsent("; ".join(map(str, reasons)))
