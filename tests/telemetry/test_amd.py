from __future__ import annotations

from pathlib import Path

import pytest

from llamaswap.telemetry.amd import AmdSource
from llamaswap.telemetry.gpu import GpuFacts, GpuSample
from llamaswap.telemetry.sources import SourceAbsent, SourceFailed
from support.telemetry_sources import plant

CARD = "sys/class/drm/card1/device"
FILES = {
    f"{CARD}/vendor": "0x1002\n",
    f"{CARD}/device": "0x744c\n",
    f"{CARD}/unique_id": "5c88007c760a4a4a\n",
    f"{CARD}/product_name": "Radeon RX 7900 XTX\n",
    f"{CARD}/mem_info_vram_total": f"{24560 << 20}\n",
    f"{CARD}/mem_info_vram_used": f"{1024 << 20}\n",
    f"{CARD}/gpu_busy_percent": "7\n",
    f"{CARD}/hwmon/hwmon3/temp1_label": "edge\n",
    f"{CARD}/hwmon/hwmon3/temp1_input": "41000\n",
    f"{CARD}/hwmon/hwmon3/temp3_label": "mem\n",
    f"{CARD}/hwmon/hwmon3/temp3_input": "58400\n",
    f"{CARD}/hwmon/hwmon3/pwm1": "51\n",
    f"{CARD}/hwmon/hwmon3/power1_average": "32000000\n",
    f"{CARD}/hwmon/hwmon3/power1_cap": "327000000\n",
}


def test_a_card_is_sampled_from_the_kernel_s_files(tmp_path: Path) -> None:
    assert AmdSource(plant(tmp_path, FILES)).read() == (
        GpuSample(
            id=0,
            name="Radeon RX 7900 XTX",
            uuid="5c88007c760a4a4a",
            celsius=41,
            memory_celsius=58,
            busy_percent=7.0,
            memory_used_mib=1024,
            memory_total_mib=24560,
            fan_percent=20.0,
            power_watts=32.0,
        ),
    )


def test_what_a_card_does_not_show_is_unknown(tmp_path: Path) -> None:
    bare = {
        f"{CARD}/vendor": "0x1002",
        f"{CARD}/device": "0x1586",
        f"{CARD}/mem_info_vram_total": str(512 << 20),
        f"{CARD}/gpu_busy_percent": "N/A",
        f"{CARD}/hwmon/hwmon0/power1_input": "9000000",
    }
    assert AmdSource(plant(tmp_path, bare)).read() == (
        GpuSample(id=0, name="AMD GPU 0x1586", uuid="", memory_total_mib=512, power_watts=9.0),
    )


def test_cards_are_numbered_in_their_order_and_outputs_or_other_makers_are_none(tmp_path: Path) -> None:
    files = {
        "sys/class/drm/card10/device/vendor": "0x1002",
        "sys/class/drm/card10/device/product_name": "second",
        "sys/class/drm/card10/device/mem_info_vram_total": "1048576",
        "sys/class/drm/card2/device/vendor": "0x1002",
        "sys/class/drm/card2/device/product_name": "first",
        "sys/class/drm/card2/device/mem_info_vram_total": "1048576",
        "sys/class/drm/card2-DP-1/device/vendor": "0x1002",
        "sys/class/drm/card2-DP-1/device/mem_info_vram_total": "1048576",
        "sys/class/drm/card0/device/vendor": "0x10de",
    }
    samples = AmdSource(plant(tmp_path, files)).read()

    assert [(sample.id, sample.name) for sample in samples] == [(0, "first"), (1, "second")]


def test_a_machine_without_such_a_card_has_none(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        AmdSource(tmp_path)


def test_cards_that_vanish_are_a_failure(tmp_path: Path) -> None:
    source = AmdSource(plant(tmp_path, FILES))
    (tmp_path / CARD / "mem_info_vram_total").unlink()

    with pytest.raises(SourceFailed):
        source.read()


def test_what_does_not_change_is_told(tmp_path: Path) -> None:
    source = AmdSource(plant(tmp_path, FILES))
    source.close()

    assert source.describe() == (
        GpuFacts(
            vendor="AMD",
            model="Radeon RX 7900 XTX",
            memory_kind="dedicated",
            memory_bytes=24560 << 20,
            driver="amdgpu",
            driver_version=None,
            power_limit_watts=327.0,
        ),
    )
