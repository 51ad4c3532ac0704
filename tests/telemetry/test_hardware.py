from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.task import Clock
from twisted.logger import capturedLogs

from llamaswap import __version__
from llamaswap.telemetry.gpu import GpuFacts
from llamaswap.telemetry.hardware import PATIENCE, Hardware, JsonObject, accelerators, inspect
from llamaswap.telemetry.sensing import open_gpus
from llamaswap.telemetry.sources import SourceAbsent, SourceFailed
from support.telemetry_sources import FakeGpus, Threads, plant


class Inspection:
    """An inspection under a clock."""

    def __init__(self, inspect: Callable[[], JsonObject]) -> None:
        self.clock, self.threads = Clock(), Threads()
        self.hardware = Hardware(
            inspect, run=self.threads.run, clock=self.clock, wall=lambda: 1_800_000_000.5
        )

    def ask(self) -> list[Any]:
        """Ask for the snapshot; it is in the list as soon as it is there."""
        answers: list[Any] = []
        self.hardware.snapshot().addCallback(answers.append)
        return answers


def test_the_snapshot_says_when_and_by_whom_it_was_taken() -> None:
    inspection = Inspection(lambda: {"cpu": {}})
    inspection.hardware.start()

    (snapshot,) = inspection.ask()
    assert snapshot.pop("capture") == {
        "scope": "inference_host",
        "method": "detected",
        "detector": {"name": "llamaswap", "version": __version__},
    }
    assert snapshot == {"schema_version": 1, "captured_at": "2027-01-15T08:00:00.500000Z", "cpu": {}}


def test_who_asks_early_waits_and_it_is_taken_once() -> None:
    inspection = Inspection(dict)
    inspection.threads.hangs = True
    inspection.hardware.start()
    early, also_early = inspection.ask(), inspection.ask()
    assert early == []

    inspection.threads.come_back()

    assert early == also_early == inspection.ask()
    assert early[0]["schema_version"] == 1
    assert inspection.threads.started == 1


def test_one_who_asked_may_leave_before_the_answer() -> None:
    inspection = Inspection(dict)
    inspection.threads.hangs = True
    inspection.hardware.start()
    leaving = inspection.hardware.snapshot()
    leaving.addErrback(lambda _: None)
    stays = inspection.ask()
    leaving.cancel()
    inspection.threads.come_back()

    assert len(stays) == 1


def test_an_inspection_that_hangs_is_given_up() -> None:
    inspection = Inspection(dict)
    inspection.threads.hangs = True
    inspection.hardware.start()
    early = inspection.ask()
    with capturedLogs() as events:
        inspection.clock.advance(PATIENCE)

    assert early == [None]
    assert [event["log_level"].name for event in events] == ["warn"]
    inspection.threads.come_back()
    assert inspection.ask() == [None]


@pytest.mark.parametrize(
    ("error", "level"), [(SourceFailed("NVML: mismatch"), "warn"), (ValueError(), "critical")]
)
def test_an_inspection_that_fails_is_told_and_answers_nothing(error: Exception, level: str) -> None:
    def fail() -> JsonObject:
        raise error

    inspection = Inspection(fail)
    with capturedLogs() as events:
        inspection.hardware.start()

    assert inspection.ask() == [None]
    assert [event["log_level"].name for event in events] == [level]


def test_accelerators_are_shown_with_nulls_for_what_is_unknown() -> None:
    known = GpuFacts(
        vendor="NVIDIA",
        model="H200",
        architecture="Hopper",
        memory_kind="dedicated",
        memory_bytes=5,
        driver="nvidia",
        driver_version="570.86",
        power_limit_watts=700.0,
    )
    first, second = accelerators([known, GpuFacts(vendor="AMD", model="GPU")])

    assert first == {
        "index": 0,
        "kind": "gpu",
        "vendor": "NVIDIA",
        "model": "H200",
        "architecture": "Hopper",
        "memory": {"kind": "dedicated", "capacity_bytes": 5},
        "driver": {"name": "nvidia", "version": "570.86"},
        "power_limit_watts": 700.0,
    }
    assert second["index"] == 1
    assert second["memory"] == {"kind": "unknown", "capacity_bytes": None}
    assert (second["architecture"], second["driver"], second["power_limit_watts"]) == (None, None, None)


def test_a_machine_with_processors_of_its_own_lists_them_and_lets_go_of_the_driver(tmp_path: Path) -> None:
    gpus = FakeGpus(GpuFacts(vendor="AMD", model="GPU"))
    facts = inspect(lambda: gpus, plant(tmp_path, {"proc/meminfo": "MemTotal: 1024 kB"}))

    assert [one["model"] for one in facts["accelerators"]] == ["GPU"]
    assert facts["memory"] == {"capacity_bytes": 1024 * 1024}
    assert gpus.closed


def test_a_machine_that_hides_its_memory_still_has_some(tmp_path: Path) -> None:
    def nothing() -> FakeGpus:
        raise SourceAbsent("none")

    facts = inspect(nothing, tmp_path)

    assert facts["memory"]["capacity_bytes"] > 0
    assert facts["accelerators"] == []


def test_a_driver_in_trouble_is_no_empty_list(tmp_path: Path) -> None:
    def trouble() -> FakeGpus:
        raise SourceFailed("mismatch")

    with pytest.raises(SourceFailed):
        inspect(trouble, tmp_path)


def test_this_machine_can_be_inspected() -> None:
    facts = inspect(open_gpus)

    assert facts["cpu"]["logical_thread_count"] >= 1
    assert facts["memory"]["capacity_bytes"] > 1 << 28
    assert re.fullmatch(r"native|container|virtual_machine|wsl|other|unknown", facts["environment"]["kind"])
    assert isinstance(facts["accelerators"], list)
