from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from llamaswap.telemetry.machine import Uname, architecture, describe, environment
from support.telemetry_sources import plant

HERE = Uname("Linux", "6.1.0-9-amd64", "x86_64")
CPUINFO = """processor\t: 0
vendor_id\t: AuthenticAMD
model name\t: AMD Ryzen 9 7950X
flags\t\t: fpu vme
processor\t: 1
vendor_id\t: AuthenticAMD
"""
ARM_CPUINFO = """processor\t: 0
BogoMIPS\t: 2000.00
CPU implementer\t: 0x41
CPU part\t: 0xd4f
"""
DESKTOP = {
    "proc/cpuinfo": CPUINFO,
    "proc/meminfo": "MemTotal: 1024 kB",
    "etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12"\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\n',
    "sys/class/dmi/id/sys_vendor": "ASUS",
    "sys/devices/system/cpu/cpu0/topology/physical_package_id": "0",
    "sys/devices/system/cpu/cpu0/topology/core_id": "0",
    "sys/devices/system/cpu/cpu1/topology/physical_package_id": "0",
    "sys/devices/system/cpu/cpu1/topology/core_id": "0",
    "sys/devices/system/cpu/cpufreq/boost": "1",
}


def test_a_machine_is_described_from_its_files(tmp_path: Path) -> None:
    assert describe(plant(tmp_path, DESKTOP), HERE, 4096) == {
        "architecture": {"name": "x86_64", "raw_name": "x86_64"},
        "operating_system": {
            "family": "linux",
            "name": "Debian GNU/Linux",
            "version": "12",
            "kernel": "6.1.0-9-amd64",
        },
        "environment": {"kind": "native", "name": None, "version": None},
        "cpu": {
            "vendor": "AMD",
            "model": "AMD Ryzen 9 7950X",
            "socket_count": 1,
            "physical_core_count": 1,
            "logical_thread_count": 2,
        },
        "memory": {"capacity_bytes": 1024 * 1024},
    }


def test_a_machine_that_tells_nothing_is_described_with_nulls(tmp_path: Path) -> None:
    described = describe(tmp_path, Uname("Linux", "", ""), 4096)

    assert described["architecture"] == {"name": "other", "raw_name": None}
    assert described["environment"] == {"kind": "unknown", "name": None, "version": None}
    assert set(described["cpu"].values()) == {None}
    assert described["operating_system"] == {
        "family": "linux",
        "name": None,
        "version": None,
        "kernel": None,
    }
    assert described["memory"] == {"capacity_bytes": None}


def test_an_arm_board_is_known_by_the_numbers_that_its_kernel_gives(tmp_path: Path) -> None:
    files = {
        "proc/cpuinfo": ARM_CPUINFO,
        "sys/devices/system/cpu/cpu0/topology/physical_package_id": "-1",
        "sys/devices/system/cpu/cpu0/topology/core_id": "0",
    }
    described = describe(plant(tmp_path, files), Uname("Linux", "6.1", "aarch64"), 4096)

    assert described["architecture"]["name"] == "arm64"
    assert described["cpu"] == {
        "vendor": "ARM",
        "model": "Neoverse-V2",
        "socket_count": None,
        "physical_core_count": None,
        "logical_thread_count": 1,
    }


@pytest.mark.parametrize(
    ("machine", "name"),
    [("amd64", "x86_64"), ("armv7l", "armv7"), ("riscv64", "riscv64"), ("loongarch64", "other")],
)
def test_an_architecture_keeps_its_raw_name_beside_the_common_one(machine: str, name: str) -> None:
    assert architecture(machine) == {"name": name, "raw_name": machine}


def test_another_system_keeps_its_raw_name(tmp_path: Path) -> None:
    described = describe(tmp_path, Uname("SunOS", "5.11", "i86pc"), 4096)

    assert described["operating_system"]["family"] == "other"
    assert described["operating_system"]["raw_family"] == "SunOS"


@pytest.mark.parametrize(
    ("files", "kind", "name"),
    [
        ({".dockerenv": ""}, "container", "docker"),
        ({"run/.containerenv": ""}, "container", "podman"),
        ({"run/systemd/container": "systemd-nspawn"}, "container", "systemd-nspawn"),
        ({"proc/1/cgroup": "0::/kubepods/besteffort/pod1/abc"}, "container", "kubernetes"),
        ({"sys/class/dmi/id/sys_vendor": "QEMU"}, "virtual_machine", "QEMU"),
        (
            {
                "sys/class/dmi/id/sys_vendor": "Microsoft Corporation",
                "sys/class/dmi/id/product_name": "Virtual Machine",
            },
            "virtual_machine",
            "Hyper-V",
        ),
        (
            {
                "sys/class/dmi/id/sys_vendor": "Microsoft Corporation",
                "sys/class/dmi/id/product_name": "Surface",
            },
            "native",
            None,
        ),
        ({".dockerenv": "", "sys/class/dmi/id/sys_vendor": "QEMU"}, "container", "docker"),
        ({}, "unknown", None),
    ],
)
def test_the_innermost_surroundings_count(
    tmp_path: Path, files: Mapping[str, str], kind: str, name: str | None
) -> None:
    found = environment(plant(tmp_path, files), HERE, CPUINFO)

    assert (found["kind"], found["name"]) == (kind, name)


def test_a_processor_knows_of_its_hypervisor_where_nothing_else_does(tmp_path: Path) -> None:
    found = environment(tmp_path, HERE, CPUINFO.replace("fpu vme", "fpu hypervisor vme"))

    assert (found["kind"], found["name"]) == ("virtual_machine", None)


def test_windows_subsystem_is_known_by_its_kernel(tmp_path: Path) -> None:
    kernel = Uname("Linux", "5.15.90.1-microsoft-standard-WSL2", "x86_64")

    assert environment(tmp_path, kernel, "")["kind"] == "wsl"
