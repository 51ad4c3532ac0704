"""What kind of machine this is, from the files that Linux shows it in.

Everything is read below a root, so that any machine can be described in a test.  A fact that no file tells is
None.  May block as long as reading small files does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from llamaswap.telemetry.files import list_folder, read_number, read_text
from llamaswap.telemetry.memory import memory_bytes

_ARCHITECTURES: Final = {
    "x86_64": "x86_64",
    "amd64": "x86_64",
    "aarch64": "arm64",
    "arm64": "arm64",
    "armv7l": "armv7",
    "ppc64le": "ppc64le",
    "riscv64": "riscv64",
    "s390x": "s390x",
}
_CPU_VENDORS: Final = {
    "AuthenticAMD": "AMD",
    "GenuineIntel": "Intel",
    "HygonGenuine": "Hygon",
    "CentaurHauls": "VIA",
    # The implementer codes of ARM processors.
    "0x41": "ARM",
    "0x42": "Broadcom",
    "0x43": "Cavium",
    "0x46": "Fujitsu",
    "0x48": "HiSilicon",
    "0x4e": "NVIDIA",
    "0x50": "APM",
    "0x51": "Qualcomm",
    "0x61": "Apple",
    "0xc0": "Ampere",
}
# The ARM cores that servers and boards with an accelerator have; the kernel tells no names.
_ARM_CORES: Final = {
    "0xd08": "Cortex-A72",
    "0xd0b": "Cortex-A76",
    "0xd0c": "Neoverse-N1",
    "0xd40": "Neoverse-V1",
    "0xd42": "Cortex-A78AE",
    "0xd49": "Neoverse-N2",
    "0xd4f": "Neoverse-V2",
    "0xd81": "Cortex-A720",
    "0xd85": "Cortex-X925",
    "0xd87": "Cortex-A725",
}
_CONTAINER_FILES: Final = ((".dockerenv", "docker"), ("run/.containerenv", "podman"))
_CGROUP_WORDS: Final = (("kubepods", "kubernetes"), ("docker", "docker"), ("lxc", "lxc"))
_VIRTUAL_MAKERS: Final = (
    ("QEMU", "QEMU"),
    ("KVM", "KVM"),
    ("VMware", "VMware"),
    ("VirtualBox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("Xen", "Xen"),
    ("Amazon EC2", "Amazon EC2"),
    ("Google Compute Engine", "Google Compute Engine"),
    ("OpenStack", "OpenStack"),
    ("Parallels", "Parallels"),
    ("Virtual Machine", "Hyper-V"),
    ("bhyve", "bhyve"),
)
_DMI: Final = ("sys_vendor", "product_name", "bios_vendor")  # files that may name one of them


@dataclass(frozen=True, slots=True)
class Uname:
    """What the kernel calls itself."""

    system: str
    release: str
    machine: str


def describe(root: Path, uname: Uname, page_bytes: int) -> dict[str, Any]:
    """Return architecture, system, environment, cpu and memory, as `/api/hardware` shows them."""
    cpuinfo = read_text(root / "proc/cpuinfo") or ""
    return {
        "architecture": architecture(uname.machine),
        "operating_system": operating_system(root, uname),
        "environment": environment(root, uname, cpuinfo),
        "cpu": processors(root, cpuinfo),
        "memory": {"capacity_bytes": memory_bytes(root, page_bytes)},
    }


def architecture(machine: str) -> dict[str, Any]:
    """Name the architecture as the interface does."""
    return {"name": _ARCHITECTURES.get(machine.lower(), "other"), "raw_name": machine or None}


def operating_system(root: Path, uname: Uname) -> dict[str, Any]:
    """Return the distribution and its kernel."""
    release = read_text(root / "etc/os-release") or read_text(root / "usr/lib/os-release") or ""
    pairs = (line.partition("=") for line in release.splitlines())
    given = {name: value.strip().strip("\"'") for name, _, value in pairs}
    known: dict[str, Any] = {"family": "linux" if uname.system == "Linux" else "other"}
    if known["family"] == "other":
        known["raw_family"] = uname.system
    known["name"] = given.get("NAME") or None
    known["version"] = given.get("VERSION_ID") or None
    known["kernel"] = uname.release or None
    return known


def environment(root: Path, uname: Uname, cpuinfo: str) -> dict[str, Any]:
    """Tell a container from a virtual machine from the bare one; the innermost counts."""
    kind, name = _surroundings(root, uname, cpuinfo)
    return {"kind": kind, "name": name, "version": None}


def processors(root: Path, cpuinfo: str) -> dict[str, Any]:
    """Return maker, model and how many there are."""
    first = _first_values(cpuinfo)
    maker = first.get("vendor_id") or first.get("cpu implementer")
    places = set(_places(root / "sys/devices/system/cpu"))
    sockets = {socket for socket, _ in places}
    threads = len(re.findall(r"^processor\s*:", cpuinfo, flags=re.MULTILINE))
    return {
        "vendor": None if maker is None else _CPU_VENDORS.get(maker, maker),
        "model": first.get("model name") or _ARM_CORES.get(first.get("cpu part", "")),
        "socket_count": len(sockets) or None,
        "physical_core_count": len(places) or None,
        "logical_thread_count": threads or None,
    }


def _surroundings(root: Path, uname: Uname, cpuinfo: str) -> tuple[str, str | None]:
    container = _container(root)
    if container is not None:
        return "container", container
    if "microsoft" in uname.release.lower():
        return "wsl", "WSL"
    makers = " ".join(read_text(root / "sys/class/dmi/id" / name) or "" for name in _DMI)
    for word, name in _VIRTUAL_MAKERS:
        if word in makers:
            return "virtual_machine", name
    if re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, flags=re.MULTILINE):
        return "virtual_machine", None
    # Without a description of the hardware there is no telling.
    return ("native", None) if makers.strip() else ("unknown", None)


def _container(root: Path) -> str | None:
    for file, name in _CONTAINER_FILES:
        if (root / file).exists():
            return name
    told = read_text(root / "run/systemd/container")
    if told:
        return told
    groups = read_text(root / "proc/1/cgroup") or ""
    return next((name for word, name in _CGROUP_WORDS if word in groups), None)


def _first_values(cpuinfo: str) -> dict[str, str]:
    first: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        name, colon, value = line.partition(":")
        if colon and value.strip():
            first.setdefault(name.strip().lower(), value.strip())
    return first


def _places(folder: Path) -> Iterator[tuple[int, int]]:
    """Yield socket and core of each logical processor whose place is known."""
    for entry in list_folder(folder):
        if re.fullmatch(r"cpu\d+", entry.name):
            socket, core = (
                read_number(entry / "topology" / name) for name in ("physical_package_id", "core_id")
            )
            if socket is not None and core is not None and socket >= 0:
                yield socket, core
