"""NVIDIA's graphics processors, through NVML.

Every call goes into the driver and may block; a driver that has lost a processor says so, and then the
library is to be opened anew.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from typing_extensions import override

from llamaswap.telemetry.gpu import GpuFacts, GpuSample, GpuSource
from llamaswap.telemetry.sources import SourceAbsent, SourceFailed

MIB: Final = 1024 * 1024
LIBRARY: Final = "libnvidia-ml.so.1"

# The names of `nvmlDeviceGetArchitecture`, for those that people run models on.
_ARCHITECTURES: Final = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada Lovelace",
    9: "Hopper",
    10: "Blackwell",
    13: "Rubin",
}

T = TypeVar("T")


def open_nvml(library: str = LIBRARY) -> NvmlSource:
    """Return the source, if this machine has the driver's library; without it, 1.4 MB of binding stay unread.

    Raises:
        SourceAbsent: no library, and as `NvmlSource`.
        SourceFailed: as `NvmlSource`.
    """
    try:
        ctypes.CDLL(library)
    except OSError as error:
        raise SourceAbsent("NVML: NVML Shared Library Not Found") from error
    return NvmlSource(load_nvml())


def load_nvml() -> Any:
    """Import the binding of NVML; it loads the driver's library only when it is opened."""
    return importlib.import_module("pynvml")


class NvmlSource(GpuSource):
    """Reads all processors that the driver has.

    Args:
        nvml: the module `pynvml`.

    Raises:
        SourceAbsent: no driver, or nothing that it drives.
        SourceFailed: the driver is there and does not work.
    """

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        nothing = {nvml.NVML_ERROR_LIBRARY_NOT_FOUND, nvml.NVML_ERROR_DRIVER_NOT_LOADED}
        # What a model of processor or a driver's age may lack; all else is the driver's trouble.
        self._unknown = {
            nvml.NVML_ERROR_NOT_SUPPORTED,
            nvml.NVML_ERROR_NO_PERMISSION,
            nvml.NVML_ERROR_NOT_FOUND,
            nvml.NVML_ERROR_INVALID_ARGUMENT,
            nvml.NVML_ERROR_FUNCTION_NOT_FOUND,
            nvml.NVML_ERROR_NO_DATA,
        }
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            kind = SourceAbsent if error.value in nothing else SourceFailed
            raise kind(f"NVML: {error}") from error
        try:
            self._devices = self._find()
        except SourceFailed:
            self.close()
            raise

    @override
    def read(self) -> tuple[GpuSample, ...]:
        return tuple(self._sample(*device) for device in self._devices)

    @override
    def describe(self) -> tuple[GpuFacts, ...]:
        version = self._known(self._nvml.nvmlSystemGetDriverVersion)
        return tuple(self._facts(handle, name, version) for _, handle, name, _ in self._devices)

    @override
    def close(self) -> None:
        with suppress(self._nvml.NVMLError):  # it may be down already, by what made us close it
            self._nvml.nvmlShutdown()

    def _find(self) -> list[tuple[int, Any, str, str]]:
        nvml = self._nvml
        found, trouble = [], None
        for index in range(self._known(nvml.nvmlDeviceGetCount) or 0):
            try:
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
            except nvml.NVMLError as error:
                trouble = error  # a lost processor must not hide the others
                continue
            name = self._known(partial(nvml.nvmlDeviceGetName, handle)) or "NVIDIA GPU"
            uuid = self._known(partial(nvml.nvmlDeviceGetUUID, handle)) or ""
            found.append((index, handle, name, uuid))
        if trouble is not None and not found:
            raise SourceFailed(f"NVML: {trouble}")
        if not found:
            raise SourceAbsent("NVML: no devices")
        return found

    def _sample(self, index: int, handle: Any, name: str, uuid: str) -> GpuSample:
        nvml = self._nvml
        memory = self._known(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        usage = self._known(lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
        milliwatts = self._known(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        return GpuSample(
            id=index,
            name=name,
            uuid=uuid,
            celsius=self._known(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            memory_celsius=self._memory_celsius(handle),
            busy_percent=None if usage is None else float(usage.gpu),
            memory_used_mib=None if memory is None else memory.used // MIB,
            memory_total_mib=None if memory is None else memory.total // MIB,
            fan_percent=self._known(lambda: float(nvml.nvmlDeviceGetFanSpeed(handle))),
            power_watts=None if milliwatts is None else milliwatts / 1000,
        )

    def _memory_celsius(self, handle: Any) -> int | None:
        field = self._nvml.NVML_FI_DEV_MEMORY_TEMP
        values = self._known(lambda: self._nvml.nvmlDeviceGetFieldValues(handle, [field]))
        if values is None or values[0].nvmlReturn != self._nvml.NVML_SUCCESS:
            return None
        return int(values[0].value.uiVal)

    def _facts(self, handle: Any, name: str, version: str | None) -> GpuFacts:
        nvml = self._nvml
        memory = self._known(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        milliwatts = self._known(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle))
        architecture = self._known(lambda: nvml.nvmlDeviceGetArchitecture(handle))
        return GpuFacts(
            vendor="NVIDIA",
            model=name.removeprefix("NVIDIA ").strip() or name,
            architecture=None if architecture is None else _ARCHITECTURES.get(architecture),
            # Boards that share the system's memory have no figure of their own.
            memory_kind="dedicated" if memory is not None else "unknown",
            memory_bytes=None if memory is None else int(memory.total),
            driver="nvidia",
            driver_version=version,
            power_limit_watts=None if milliwatts is None else milliwatts / 1000,
        )

    def _known(self, ask: Callable[[], T]) -> T | None:
        """Ask the driver; None where it does not know.

        Raises:
            SourceFailed: the driver is in trouble.
        """
        try:
            return ask()
        except self._nvml.NVMLError as error:
            if error.value in self._unknown:
                return None
            raise SourceFailed(f"NVML: {error}") from error
