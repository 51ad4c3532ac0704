"""A graphics driver for a daemon under test: it does what a file says, at each call.

Written as `pynvml.py` into a folder that the daemon's Python looks at first.
The words: `ok`; `unknown`, nothing but its name is known; `lost`, the device
has fallen off the bus; `hangs`, until the word is another; `absent`, no driver.
"""

from __future__ import annotations

from pathlib import Path

PROGRAM = """
import pathlib, time
from types import SimpleNamespace as Facts

SAID = pathlib.Path(__file__).with_name("driver")
NVML_SUCCESS, NVML_ERROR_INVALID_ARGUMENT, NVML_ERROR_NOT_SUPPORTED, NVML_ERROR_NO_PERMISSION = 0, 2, 3, 4
NVML_ERROR_NOT_FOUND, NVML_ERROR_DRIVER_NOT_LOADED, NVML_ERROR_LIBRARY_NOT_FOUND = 6, 9, 12
NVML_ERROR_FUNCTION_NOT_FOUND, NVML_ERROR_GPU_IS_LOST, NVML_ERROR_NO_DATA = 13, 15, 21
NVML_TEMPERATURE_GPU, NVML_FI_DEV_MEMORY_TEMP = 0, 82

class NVMLError(Exception):
    def __init__(self, value):
        super().__init__(f"error {value}")
        self.value = value

def said(known=True):
    while (word := SAID.read_text()) == "hangs":
        time.sleep(0.05)
    errors = {"lost": NVML_ERROR_GPU_IS_LOST, "absent": NVML_ERROR_LIBRARY_NOT_FOUND}
    if word in errors:
        raise NVMLError(errors[word])
    if word == "unknown" and not known:
        raise NVMLError(NVML_ERROR_NOT_SUPPORTED)

def nvmlInit(): said()
def nvmlShutdown(): pass
def nvmlDeviceGetCount(): said(); return 1
def nvmlDeviceGetHandleByIndex(index): said(); return index
def nvmlDeviceGetName(handle): said(); return "NVIDIA Stub 9000"
def nvmlDeviceGetUUID(handle): said(); return "GPU-1"
def nvmlSystemGetDriverVersion(): said(); return "1.0"
def nvmlDeviceGetMemoryInfo(handle): said(False); return Facts(used=3 << 30, total=24 << 30)
def nvmlDeviceGetUtilizationRates(handle): said(False); return Facts(gpu=42)
def nvmlDeviceGetPowerUsage(handle): said(False); return 60500
def nvmlDeviceGetTemperature(handle, kind): said(False); return 51
def nvmlDeviceGetFanSpeed(handle): said(False); return 30
def nvmlDeviceGetFieldValues(handle, fields): said(False); return [Facts(nvmlReturn=3)]
def nvmlDeviceGetEnforcedPowerLimit(handle): said(False); return 350000
def nvmlDeviceGetArchitecture(handle): said(False); return 8
"""


class Driver:
    """The driver of one daemon.

    Args:
        folder: where it is written to; `environ` makes a daemon use it.
    """

    def __init__(self, folder: Path, word: str) -> None:
        (folder / "pynvml.py").write_text(PROGRAM)
        # The driver's own library has only to be there; any other does for that.
        (folder / "libnvidia-ml.so.1").symlink_to(_some_library())
        self.environ = {"PYTHONPATH": str(folder), "LD_LIBRARY_PATH": str(folder)}
        self._said = folder / "driver"
        self.says(word)

    def says(self, word: str) -> None:
        """From now on."""
        new = self._said.with_suffix(".new")
        new.write_text(word)
        new.replace(self._said)


def _some_library() -> str:
    """One that every process has."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    return next(line.split()[-1] for line in maps if "/libc" in line)
