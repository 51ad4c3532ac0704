"""The names of all metrics that a daemon can have."""

from __future__ import annotations

import re

from llamaswap.telemetry.gpu import GpuSample
from llamaswap.telemetry.host import HostSample, Traffic
from llamaswap.telemetry.resources import Resources
from llamaswap.telemetry.sampler import Sample
from support.telemetry_scrape import Scrape


def exported_metrics() -> set[str]:
    """Return the names of all families, with everything to show that a machine can have."""
    traffic = (Traffic(name="eth0", received_bytes=1, sent_bytes=1),)
    gpu = GpuSample(id=0, name="", uuid="")
    host = HostSample(
        cpu_percent=(0.0,),
        memory_total_mib=1,
        memory_used_mib=1,
        memory_free_mib=0,
        swap_total_mib=0,
        swap_used_mib=0,
        load=(0.0, 0.0, 0.0),
        traffic=traffic,
    )
    metrics = Scrape().metrics
    metrics.watch(Resources(lambda: Sample(at_us=0, host=host, gpus=(gpu,))))
    return set(re.findall(r"^# TYPE (\S+) ", metrics.render().decode(), re.MULTILINE))
