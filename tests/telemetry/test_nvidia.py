from __future__ import annotations

import pytest

from llamaswap.telemetry.gpu import GpuFacts, GpuSample
from llamaswap.telemetry.nvidia import NvmlSource, load_nvml, open_nvml
from llamaswap.telemetry.sources import SourceAbsent, SourceFailed
from support.telemetry_sources import LOST, NO_LIBRARY, NOT_LOADED, NOT_SUPPORTED, UNKNOWN, FakeNvml


def test_a_processor_is_sampled_with_everything_that_its_driver_tells() -> None:
    source = NvmlSource(FakeNvml(memory_celsius=60))

    assert source.read() == (
        GpuSample(
            id=0,
            name="NVIDIA GeForce RTX 3090",
            uuid="GPU-0",
            celsius=40,
            memory_celsius=60,
            busy_percent=3.0,
            memory_used_mib=300,
            memory_total_mib=20000,
            fan_percent=30.0,
            power_watts=60.5,
        ),
    )


def test_what_a_processor_does_not_have_is_unknown_and_never_zero() -> None:
    lacks = (
        "nvmlDeviceGetFanSpeed",
        "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetTemperature",
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetMemoryInfo",
    )
    (sample,) = NvmlSource(FakeNvml(trouble=dict.fromkeys(lacks, NOT_SUPPORTED))).read()

    assert sample == GpuSample(id=0, name="NVIDIA GeForce RTX 3090", uuid="GPU-0")


@pytest.mark.parametrize("error", [LOST, UNKNOWN, 1])
def test_a_driver_in_trouble_is_a_failure_so_that_it_is_opened_anew(error: int) -> None:
    nvml = FakeNvml()
    source = NvmlSource(nvml)
    nvml.trouble["nvmlDeviceGetMemoryInfo"] = error

    with pytest.raises(SourceFailed):
        source.read()


@pytest.mark.parametrize("error", [NO_LIBRARY, NOT_LOADED])
def test_without_a_driver_there_is_nothing(error: int) -> None:
    with pytest.raises(SourceAbsent):
        NvmlSource(FakeNvml(trouble={"nvmlInit": error}))


def test_a_driver_that_does_not_start_is_in_trouble() -> None:
    with pytest.raises(SourceFailed) as caught:
        NvmlSource(FakeNvml(trouble={"nvmlInit": 18}))

    assert not isinstance(caught.value, SourceAbsent)


def test_a_driver_without_a_device_is_closed_again() -> None:
    nvml = FakeNvml(names=())
    with pytest.raises(SourceAbsent):
        NvmlSource(nvml)

    assert nvml.shutdowns == 1


def test_a_lost_processor_does_not_hide_the_others_and_keeps_its_number() -> None:
    nvml = FakeNvml(names=("A", "B", "C"), lost={1})

    assert [(sample.id, sample.name) for sample in NvmlSource(nvml).read()] == [(0, "A"), (2, "C")]


def test_when_all_are_lost_that_is_trouble() -> None:
    nvml = FakeNvml(names=("A",), lost={0})
    with pytest.raises(SourceFailed) as caught:
        NvmlSource(nvml)

    assert not isinstance(caught.value, SourceAbsent)
    assert nvml.shutdowns == 1


def test_what_does_not_change_is_told_with_its_driver() -> None:
    assert NvmlSource(FakeNvml()).describe() == (
        GpuFacts(
            vendor="NVIDIA",
            model="GeForce RTX 3090",
            architecture="Ampere",
            memory_kind="dedicated",
            memory_bytes=20_000 << 20,
            driver="nvidia",
            driver_version="570.86",
            power_limit_watts=350.0,
        ),
    )


def test_a_board_that_shares_its_memory_claims_none_of_its_own() -> None:
    trouble = {"nvmlDeviceGetMemoryInfo": NOT_SUPPORTED, "nvmlDeviceGetArchitecture": NOT_SUPPORTED}
    (facts,) = NvmlSource(FakeNvml(trouble=trouble)).describe()

    assert (facts.memory_kind, facts.memory_bytes, facts.architecture) == ("unknown", None, None)


def test_closing_what_is_down_already_is_quiet() -> None:
    nvml = FakeNvml()
    source = NvmlSource(nvml)
    nvml.trouble["nvmlShutdown"] = 1

    source.close()


def test_the_real_binding_has_every_name_that_is_used() -> None:
    nvml = load_nvml()
    names = {name for name in dir(FakeNvml) if name.lower().startswith("nvml")}
    names |= {
        "nvmlInit",
        "nvmlDeviceGetCount",
        "nvmlSystemGetDriverVersion",
        "nvmlDeviceGetName",
        "nvmlDeviceGetUUID",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetTemperature",
        "nvmlDeviceGetFanSpeed",
        "nvmlDeviceGetEnforcedPowerLimit",
        "nvmlDeviceGetArchitecture",
    }

    assert {name for name in names if not hasattr(nvml, name)} == set()
    assert (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_GPU_IS_LOST) == (NOT_SUPPORTED, LOST)


def test_without_the_drivers_library_its_binding_is_not_even_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def load() -> object:
        raise AssertionError("read for nothing")

    monkeypatch.setattr("llamaswap.telemetry.nvidia.load_nvml", load)

    with pytest.raises(SourceAbsent, match="NVML: NVML Shared Library Not Found"):
        open_nvml("libno-such-driver.so.1")


def test_with_a_library_the_binding_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml()
    monkeypatch.setattr("llamaswap.telemetry.nvidia.load_nvml", lambda: nvml)

    assert open_nvml("libc.so.6").read() == NvmlSource(nvml).read()
