"""How busy the machine is: processors, memory, load, network.

Read through psutil.  Knows neither when a sample is taken nor where it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import psutil
from typing_extensions import override

from llamaswap.telemetry.sources import Source, SourceFailed

MIB: Final = 1024 * 1024

_LOOPBACK: Final = "lo"


@dataclass(frozen=True, slots=True)
class Traffic:
    """What has gone through one network interface since it came up."""

    name: str
    received_bytes: int
    sent_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSample:
    """The machine at one moment; sizes in MiB, as they are shown."""

    cpu_percent: tuple[float, ...]  # of each logical processor since the sample before, 0..100
    memory_total_mib: int
    memory_used_mib: int
    memory_free_mib: int
    swap_total_mib: int
    swap_used_mib: int
    load: tuple[float, float, float]  # of 1, 5 and 15 minutes
    traffic: tuple[Traffic, ...] | None  # loopback left out; None where it cannot be read


class Psutil(Protocol):
    """What is used of psutil."""

    def cpu_times(self, *, percpu: bool) -> Sequence[Any]: ...

    def virtual_memory(self) -> Any: ...

    def swap_memory(self) -> Any: ...

    def getloadavg(self) -> tuple[float, float, float]: ...

    def net_io_counters(self, *, pernic: bool) -> Mapping[str, Any]: ...


class _Spent(NamedTuple):
    """Seconds of one processor."""

    total: float
    busy: float


class HostSource(Source[HostSample]):
    """Reads samples; the processors' first is over the time since the source was opened."""

    def __init__(self, counters: Psutil = psutil) -> None:  # type: ignore[assignment]  # looser stubs
        self._counters = counters
        self._spent = self._processors()

    @override
    def read(self) -> HostSample:
        try:
            memory, swap = self._counters.virtual_memory(), self._counters.swap_memory()
            return HostSample(
                cpu_percent=self._cpu_percent(),
                memory_total_mib=memory.total // MIB,
                memory_used_mib=memory.used // MIB,
                memory_free_mib=memory.free // MIB,
                swap_total_mib=swap.total // MIB,
                swap_used_mib=swap.used // MIB,
                load=self._counters.getloadavg(),
                traffic=self._traffic(),
            )
        except (OSError, psutil.Error) as error:
            raise SourceFailed(str(error)) from error

    @override
    def close(self) -> None:
        pass

    def _cpu_percent(self) -> tuple[float, ...]:
        before, self._spent = self._spent, self._processors()
        if len(before) != len(self._spent):
            before = self._spent  # processors came or went
        return tuple(_share(old, new) for old, new in zip(before, self._spent, strict=True))

    def _processors(self) -> Sequence[_Spent]:
        # psutil's own percentages are kept per thread, and every sample may come from another one.
        try:
            return [_spent(times) for times in self._counters.cpu_times(percpu=True)]
        except (OSError, psutil.Error) as error:
            raise SourceFailed(str(error)) from error

    def _traffic(self) -> tuple[Traffic, ...] | None:
        try:
            counters = self._counters.net_io_counters(pernic=True)
        except (OSError, psutil.Error):
            return None
        return tuple(
            Traffic(name, count.bytes_recv, count.bytes_sent)
            for name, count in sorted(counters.items())
            if name != _LOOPBACK
        )


def _spent(times: Any) -> _Spent:
    # The kernel counts a guest's time as its host's, too.
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    return _Spent(total, total - times.idle - getattr(times, "iowait", 0.0))


def _share(old: _Spent, new: _Spent) -> float:
    passed = new.total - old.total
    if passed <= 0:
        return 0.0
    return round(min(max((new.busy - old.busy) / passed * 100, 0.0), 100.0), 2)
