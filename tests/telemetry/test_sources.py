from __future__ import annotations

from llamaswap.telemetry.sources import SourceAbsent, SourceFailed


def test_nothing_being_there_is_one_way_of_failing() -> None:
    assert issubclass(SourceAbsent, SourceFailed)
