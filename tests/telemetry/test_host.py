from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from llamaswap.telemetry.host import HostSource, Traffic
from llamaswap.telemetry.sources import SourceFailed

Times = namedtuple("Times", "user system idle iowait guest guest_nice")  # noqa: PYI024 - psutil's shape
MIB = 1024 * 1024


class FakePsutil:
    """psutil on a machine of the test's making."""

    def __init__(self, *times: Sequence[Times] | Exception) -> None:
        self.times = list(times)
        self.broken_network = False

    def cpu_times(self, *, percpu: bool) -> Sequence[Any]:
        assert percpu
        times = self.times.pop(0)
        if isinstance(times, Exception):
            raise times
        return times

    def virtual_memory(self) -> Any:
        return SimpleNamespace(total=24576 * MIB + 1, used=5120 * MIB, free=3072 * MIB)

    def swap_memory(self) -> Any:
        return SimpleNamespace(total=1024 * MIB, used=MIB)

    def getloadavg(self) -> tuple[float, float, float]:
        return (0.5, 0.25, 0.1)

    def net_io_counters(self, *, pernic: bool) -> Mapping[str, Any]:
        assert pernic
        if self.broken_network:
            raise PermissionError("/proc/net/dev")
        return {
            "lo": SimpleNamespace(bytes_recv=1, bytes_sent=1),
            "wlan0": SimpleNamespace(bytes_recv=5, bytes_sent=6),
            "eth0": SimpleNamespace(bytes_recv=20, bytes_sent=10),
        }


def spent(busy: float, idle: float, *, waiting: float = 0.0, guest: float = 0.0) -> Times:
    return Times(busy, 0.0, idle, waiting, guest, 0.0)


def test_a_sample_is_what_the_machine_did_since_the_one_before() -> None:
    before = [spent(10, 90), spent(0, 100)]
    after = [spent(11, 97), spent(0.5, 102, waiting=1.5)]
    sample = HostSource(FakePsutil(before, after)).read()

    assert sample.cpu_percent == (12.5, 12.5)
    assert (sample.memory_total_mib, sample.memory_used_mib, sample.memory_free_mib) == (24576, 5120, 3072)
    assert (sample.swap_total_mib, sample.swap_used_mib) == (1024, 1)
    assert sample.load == (0.5, 0.25, 0.1)


def test_what_a_guest_used_is_not_counted_twice() -> None:
    before, after = [spent(10, 90, guest=10)], [spent(14, 96, guest=14)]

    assert HostSource(FakePsutil(before, after)).read().cpu_percent == (40.0,)


def test_the_loopback_is_no_network_and_the_others_are_sorted() -> None:
    sample = HostSource(FakePsutil([spent(0, 0)], [spent(0, 1)])).read()

    assert sample.traffic == (Traffic("eth0", 20, 10), Traffic("wlan0", 5, 6))


def test_a_network_that_cannot_be_read_leaves_the_rest() -> None:
    counters = FakePsutil([spent(0, 0)], [spent(0, 1)])
    counters.broken_network = True

    assert HostSource(counters).read().traffic is None


@pytest.mark.parametrize("after", [[spent(0, 0)], [spent(-5, -5)], [spent(1, 0), spent(1, 0)]])
def test_counters_that_stand_still_run_back_or_change_their_number_give_zero(after: list[Times]) -> None:
    assert set(HostSource(FakePsutil([spent(0, 0)], after)).read().cpu_percent) == {0.0}


@pytest.mark.parametrize("error", [OSError("gone"), psutil.AccessDenied()])
def test_counters_that_cannot_be_read_are_a_failure_of_the_source(error: Exception) -> None:
    source = HostSource(FakePsutil([spent(0, 0)], error))
    with pytest.raises(SourceFailed):
        source.read()

    with pytest.raises(SourceFailed):
        HostSource(FakePsutil(error))


def test_this_machine_can_be_sampled() -> None:
    source = HostSource()
    sample = source.read()
    source.close()

    assert len(sample.cpu_percent) == psutil.cpu_count()
    assert all(0 <= percent <= 100 for percent in sample.cpu_percent)
    assert sample.memory_total_mib >= sample.memory_used_mib > 0
    assert all(isinstance(load, float) for load in sample.load)
    assert sample.traffic is None or all(one.name != "lo" for one in sample.traffic)
