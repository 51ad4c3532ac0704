from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from llamaswap.telemetry.gpu import GpuSource, open_first
from llamaswap.telemetry.sources import SourceAbsent, SourceFailed
from support.telemetry_sources import GPU, FakeGpus


def raises(error: Exception) -> Callable[[], GpuSource]:
    def opener() -> GpuSource:
        raise error

    return opener


def test_how_full_the_memory_is_follows_from_its_size() -> None:
    assert GPU.memory_percent == 1.5
    assert replace(GPU, memory_total_mib=None).memory_percent is None
    assert replace(GPU, memory_used_mib=None).memory_percent is None
    assert replace(GPU, memory_total_mib=0).memory_percent is None


def test_the_first_source_that_works_is_opened() -> None:
    works = FakeGpus()

    assert open_first((raises(SourceAbsent("none")), lambda: works, raises(ValueError()))) is works


def test_a_driver_in_trouble_does_not_hide_another_maker_s_processors() -> None:
    works = FakeGpus()

    assert open_first((raises(SourceFailed("mismatch")), lambda: works)) is works


def test_a_driver_in_trouble_is_not_taken_for_an_empty_machine() -> None:
    with pytest.raises(SourceFailed, match="mismatch") as caught:
        open_first((raises(SourceFailed("mismatch")), raises(SourceAbsent("none"))))

    assert not isinstance(caught.value, SourceAbsent)


def test_a_machine_without_any_says_where_it_was_looked_for() -> None:
    with pytest.raises(SourceAbsent, match="no library; no cards"):
        open_first((raises(SourceAbsent("no library")), raises(SourceAbsent("no cards"))))
