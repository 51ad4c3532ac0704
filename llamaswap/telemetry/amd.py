"""AMD's graphics processors, as the kernel's driver shows them under `/sys/class/drm`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from typing_extensions import override

from llamaswap.telemetry.files import list_folder, read_number, read_text
from llamaswap.telemetry.gpu import GpuFacts, GpuSample, GpuSource
from llamaswap.telemetry.sources import SourceAbsent, SourceFailed

MIB: Final = 1024 * 1024

_CARDS: Final = Path("sys/class/drm")
_CARD: Final = re.compile(r"card\d+", flags=re.ASCII)
_VENDOR: Final = "0x1002"
_FULL_SPEED: Final = 255  # of a fan, as the driver counts


class AmdSource(GpuSource):
    """Reads every card with memory of its own.

    Args:
        root: where `sys` is; `/` but in tests.

    Raises:
        SourceAbsent: there is no such card.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._cards = [card for card in _cards(root / _CARDS) if _is_ours(card)]
        if not self._cards:
            raise SourceAbsent("amdgpu: no cards")

    @override
    def read(self) -> tuple[GpuSample, ...]:
        samples = tuple(_sample(index, card) for index, card in enumerate(self._cards))
        there = tuple(sample for sample in samples if sample.memory_total_mib is not None)
        if not there:
            raise SourceFailed("amdgpu: the cards are gone")
        return there

    @override
    def describe(self) -> tuple[GpuFacts, ...]:
        return tuple(map(_facts, self._cards))

    @override
    def close(self) -> None:
        pass


def _cards(folder: Path) -> list[Path]:
    """Return the device folders of all cards, in the order of their numbers; outputs are no cards."""
    found = [entry for entry in list_folder(folder) if _CARD.fullmatch(entry.name)]
    return [card / "device" for card in sorted(found, key=lambda card: int(card.name.removeprefix("card")))]


def _is_ours(card: Path) -> bool:
    return read_text(card / "vendor") == _VENDOR and read_number(card / "mem_info_vram_total") is not None


def _sample(index: int, card: Path) -> GpuSample:
    used, total = read_number(card / "mem_info_vram_used"), read_number(card / "mem_info_vram_total")
    sensors = _sensors(card)
    busy, fan = read_number(card / "gpu_busy_percent"), read_number(sensors / "pwm1")
    microwatts = read_number(sensors / "power1_average")
    if microwatts is None:
        microwatts = read_number(sensors / "power1_input")
    return GpuSample(
        id=index,
        name=_name(card),
        uuid=read_text(card / "unique_id") or "",
        celsius=_celsius(sensors, "edge"),
        memory_celsius=_celsius(sensors, "mem"),
        busy_percent=None if busy is None else float(busy),
        memory_used_mib=None if used is None else used // MIB,
        memory_total_mib=None if total is None else total // MIB,
        fan_percent=None if fan is None else round(fan / _FULL_SPEED * 100, 1),
        power_watts=None if microwatts is None else microwatts / 1_000_000,
    )


def _facts(card: Path) -> GpuFacts:
    microwatts = read_number(_sensors(card) / "power1_cap")
    return GpuFacts(
        vendor="AMD",
        model=_name(card),
        memory_kind="dedicated",
        memory_bytes=read_number(card / "mem_info_vram_total"),
        driver="amdgpu",
        driver_version=read_text(card / "driver/module/version"),  # not where the kernel brought it
        power_limit_watts=None if not microwatts else microwatts / 1_000_000,
    )


def _name(card: Path) -> str:
    device = read_text(card / "device")
    return read_text(card / "product_name") or (f"AMD GPU {device}" if device else "AMD GPU")


def _sensors(card: Path) -> Path:
    return min(list_folder(card / "hwmon"), default=card / "hwmon")


def _celsius(sensors: Path, label: str) -> int | None:
    for number in range(1, 4):
        if read_text(sensors / f"temp{number}_label") == label:
            millidegrees = read_number(sensors / f"temp{number}_input")
            return None if millidegrees is None else round(millidegrees / 1000)
    return None
