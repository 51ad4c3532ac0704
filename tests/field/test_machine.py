"""Cases from the field: a graphics driver with moods, and a page behind a prefix."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest

from support.field import Field
from support.field_nvml import Driver
from support.real_daemon_talk import Wire, ask, request_bytes
from support.real_nginx import nginx_before

pytestmark = pytest.mark.integration

TEMPERATURE = "llamaswap_gpu_temperature_celsius"
FAN = "llamaswap_gpu_fan_speed_percent"
CPU = "llamaswap_cpu_util_percent"
INTERVAL = 5.0  # seconds between two samples: there is no shorter one


def with_helpers(folder: Path) -> dict[str, str]:
    """A PATH that begins with tools for GPUs which say garbage, note that they were called, and stay."""
    for name in ("nvidia-smi", "rocm-smi", "amd-smi", "lact"):
        path = folder / name
        path.write_text(f'#!/bin/sh\necho "$0 $@" >>{folder}/called\necho "[N/A], garbage"\nexec sleep 600\n')
        path.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def gpus(field: Field) -> list[Any]:
    """The latest sample of each graphics processor."""
    samples = field.get("/api/performance").json["gpu_stats"]
    return list(samples or [])


@pytest.mark.soak(seconds=90)
def test_case_096_a_driver_that_fails_hangs_or_knows_nothing_comes_back_and_is_never_believed_too_long(
    tmp_path: Path,
) -> None:
    driver = Driver(tmp_path, "ok")
    environ = {**driver.environ, **with_helpers(tmp_path)}
    soon = 4 * INTERVAL
    with Field(tmp_path, {"A": ""}, config={"performance": {"every": "5s"}}, environ=environ) as field:

        def seen(metric: str) -> bool:
            return any(sample.startswith(metric) for sample in field.daemon.metrics())

        field.until(lambda: seen(TEMPERATURE), "a temperature", soon)
        assert field.metric(TEMPERATURE) == 51
        for trouble, told in (("lost", "telemetry.failed"), ("hangs", "telemetry.hangs")):
            driver.says(trouble)
            field.until(lambda: not seen(TEMPERATURE), "what is old to be gone", soon)
            assert seen(CPU), "the machine is watched all the same"
            assert field.chat("A").ok
            driver.says("ok")
            field.until(lambda: seen(TEMPERATURE), "it to be back", soon)
            assert len(field.log(told)) == 1
        assert not (tmp_path / "called").exists(), "no helper is ever run"


@pytest.mark.soak(seconds=40)
def test_case_096_what_a_driver_does_not_know_is_unknown_and_not_zero(tmp_path: Path) -> None:
    driver = Driver(tmp_path, "unknown")
    config = {"performance": {"every": "5s"}}
    with Field(tmp_path, {"A": ""}, config=config, environ=driver.environ) as field:
        field.until(lambda: gpus(field), "a sample", 4 * INTERVAL)

        sample = gpus(field)[-1]
        assert (sample["name"], sample["uuid"]) == ("NVIDIA Stub 9000", "GPU-1")
        unknown = ("temp_c", "gpu_util_pct", "mem_used_mb", "mem_total_mb", "fan_speed_pct", "power_draw_w")
        assert {key: sample[key] for key in unknown} == dict.fromkeys(unknown)
        assert not any(name.startswith((TEMPERATURE, FAN)) for name in field.daemon.metrics())
        driver.says("hangs")
        field.until(lambda: field.log("telemetry.hangs"), "it to hang", 4 * INTERVAL)
        assert field.chat("A").ok
        assert field.stop() < 5.0, "nobody waits for it"


def test_case_096_a_driver_that_hangs_from_the_start_delays_neither_start_nor_stop(tmp_path: Path) -> None:
    driver = Driver(tmp_path, "hangs")
    environ = {**driver.environ, **with_helpers(tmp_path)}
    with Field(tmp_path, {"A": ""}, environ=environ) as field:
        assert field.chat("A").ok
        assert field.get("/metrics").status == 200
        began = time.monotonic()
        field.visit("/api/hardware").leave("fin")
        assert field.stop() < 5.0
        assert time.monotonic() - began < 6.0
    assert not (tmp_path / "called").exists(), "no helper is ever run"


# --- pages ---------------------------------------------------------------------------------------------


def test_case_097_the_page_works_behind_a_prefix_and_is_never_out_of_date(tmp_path: Path) -> None:
    """There is no application with assets yet: a page of links is all that a prefix could spoil."""
    with Field(tmp_path, {"A": ""}) as field, nginx_before(field.daemon.port, tmp_path) as front:
        page = ask(front, "GET", "/llm/ui/")
        assert page.status == 200
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        assert page.headers["Cache-Control"] == "no-cache"
        assert b"src=" not in page.body, "nothing else has to be loaded for it"
        links = re.findall(r'href="([^"]*)"', page.body.decode())
        assert len(links) > 8
        for link in links:
            path = urljoin("http://h/llm/ui/", link).removeprefix("http://h")
            assert path.startswith("/llm/"), link
            with Wire(front) as wire:
                wire.send(request_bytes("GET", path, headers={"Connection": "close"}))
                assert wire.read_until(b"\r\n").split()[1] in (b"200", b"503"), link
        for path, status in (("index.html", 200), ("models", 200), ("assets/index-0ld.js", 404)):
            assert ask(front, "GET", f"/llm/ui/{path}").status == status, path
        # What leads there is llama-swap's, and as absolute as there.
        assert field.get("/").headers["Location"] == "/ui"
