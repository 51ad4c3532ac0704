"""Sources, drivers and machines that a test makes up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

from twisted.internet.defer import Deferred, execute
from typing_extensions import override

from llamaswap.telemetry.gpu import GpuFacts, GpuSample, GpuSource
from llamaswap.telemetry.host import HostSample, Traffic
from llamaswap.telemetry.sources import Source

T = TypeVar("T")

HOST = HostSample(
    cpu_percent=(12.5, 7.25),
    memory_total_mib=24576,
    memory_used_mib=5120,
    memory_free_mib=3072,
    swap_total_mib=1024,
    swap_used_mib=1,
    load=(0.5, 0.25, 0.1),
    traffic=(Traffic("eth0", 20, 10),),
)
GPU = GpuSample(
    id=0,
    name="GPU",
    uuid="GPU-1",
    celsius=40,
    busy_percent=3.0,
    memory_used_mib=300,
    memory_total_mib=20000,
    fan_percent=30.0,
    power_watts=60.5,
)


class Threads:
    """Where blocking work is done: at once, or, while it hangs, when the test says so."""

    def __init__(self) -> None:
        self.hangs = False
        self.started = 0
        self._held: list[tuple[Callable[[], Any], Deferred[Any]]] = []

    def run(self, work: Callable[[], Any]) -> Deferred[Any]:
        """Stand for `in_thread`."""
        self.started += 1
        if not self.hangs:
            return execute(work)
        done: Deferred[Any] = Deferred()
        self._held.append((work, done))
        return done

    def come_back(self) -> None:
        """Let what hangs be done now."""
        held, self._held = self._held, []
        for work, done in held:
            execute(work).addBoth(done.callback)


class FakeSource(Source[T], Generic[T]):
    """Answers with what it is given; an exception is raised."""

    def __init__(self, *answers: T | Exception) -> None:
        self.answers = list(answers)
        self.opened = 0
        self.closed = 0

    def open(self) -> FakeSource[T]:
        """Stand for the function that opens a source."""
        self.opened += 1
        return self

    @override
    def read(self) -> T:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    @override
    def close(self) -> None:
        self.closed += 1


class FakeGpus(GpuSource):
    """Graphics processors that are only told of."""

    def __init__(self, *facts: GpuFacts) -> None:
        self.facts = facts
        self.closed = False

    @override
    def read(self) -> tuple[GpuSample, ...]:
        return ()

    @override
    def describe(self) -> tuple[GpuFacts, ...]:
        return self.facts

    @override
    def close(self) -> None:
        self.closed = True


class NvmlTrouble(Exception):
    """An error of the library, by its number."""

    def __init__(self, value: int) -> None:
        super().__init__(f"error {value}")
        self.value = value


NOT_SUPPORTED, NOT_LOADED, NO_LIBRARY, LOST, UNKNOWN = 3, 9, 12, 15, 999


@dataclass
class FakeNvml:
    """The binding of NVML; a function named in `trouble` raises that error."""

    names: Sequence[str] = ("NVIDIA GeForce RTX 3090",)
    trouble: dict[str, int] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)
    memory_celsius: int | None = None
    shutdowns: int = 0

    NVMLError = NvmlTrouble
    NVML_SUCCESS = 0
    NVML_ERROR_INVALID_ARGUMENT = 2
    NVML_ERROR_NOT_SUPPORTED = NOT_SUPPORTED
    NVML_ERROR_NO_PERMISSION = 4
    NVML_ERROR_NOT_FOUND = 6
    NVML_ERROR_DRIVER_NOT_LOADED = NOT_LOADED
    NVML_ERROR_LIBRARY_NOT_FOUND = NO_LIBRARY
    NVML_ERROR_FUNCTION_NOT_FOUND = 13
    NVML_ERROR_NO_DATA = 21
    NVML_TEMPERATURE_GPU = 0
    NVML_FI_DEV_MEMORY_TEMP = 82

    def nvmlShutdown(self) -> None:
        self.shutdowns += 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if index in self.lost:
            raise NvmlTrouble(LOST)
        return index

    def nvmlDeviceGetFieldValues(self, handle: int, fields: Sequence[int]) -> Sequence[Any]:
        known = self.memory_celsius is not None
        value = SimpleNamespace(uiVal=self.memory_celsius)
        return [SimpleNamespace(nvmlReturn=0 if known else NOT_SUPPORTED, value=value)]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        answers: Mapping[str, Callable[..., Any]] = {
            "nvmlInit": lambda: None,
            "nvmlDeviceGetCount": lambda: len(self.names),
            "nvmlSystemGetDriverVersion": lambda: "570.86",
            "nvmlDeviceGetName": lambda handle: self.names[handle],
            "nvmlDeviceGetUUID": lambda handle: f"GPU-{handle}",
            "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(used=300 << 20, total=20_000 << 20),
            "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=3, memory=1),
            "nvmlDeviceGetPowerUsage": lambda handle: 60_500,
            "nvmlDeviceGetTemperature": lambda handle, sensor: 40,
            "nvmlDeviceGetFanSpeed": lambda handle: 30,
            "nvmlDeviceGetEnforcedPowerLimit": lambda handle: 350_000,
            "nvmlDeviceGetArchitecture": lambda handle: 7,
        }
        if name not in answers:
            raise AttributeError(name)
        if name in self.trouble:
            return _raiser(NvmlTrouble(self.trouble[name]))
        return answers[name]


def _raiser(error: Exception) -> Callable[..., Any]:
    def fail(*_args: Any) -> Any:
        raise error

    return fail


def plant(root: Path, files: Mapping[str, str]) -> Path:
    """Write the files of a machine below a folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
